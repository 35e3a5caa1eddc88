// Numbers in messages.
#pragma once

#include <string>

namespace heddle {

// The shortest text that is read as the same number: 1 and 1e-09, where std::to_string has 1.000000
// and 0.000000.
std::string number_text(double value);

}  // namespace heddle
