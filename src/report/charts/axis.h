// Numbers beside an axis: all of one axis are written alike.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace heddle::report {

// One text for each tick. Ticks at equal distances have equally many digits behind the point and
// the same unit (k, M, G); powers of ten are all written out, or all as 10ⁿ where some would be
// long.
std::vector<std::string> tick_texts(std::span<const double> ticks);

// "10⁻³" as people write it; with a factor "2.5×10⁻³".
std::string power_of_ten(int exponent);
std::string scientific(double value, int digits);  // digits behind the point

}  // namespace heddle::report
