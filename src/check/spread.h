// How far rounding to a type moves results, by experiment.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/rounding.h"
#include "check/values.h"

namespace heddle::check {

// The largest differences seen, of each group of tensors. One tensor alone may be moved by little
// in every draw by chance; a group of them is not.
class Spread {
 public:
  void add(const std::vector<Difference>& draw);
  double of(const std::string& group, Measure measure) const;  // 0: not seen, or without limit

 private:
  struct Most {
    double largest = 0, mean = 0;
  };
  std::map<std::string, Most> groups_;
};

// Draws move numbers so many times as far as rounding at its worst. That is the safety of what is
// allowed: results move in proportion, and where they jump, wide draws see jumps that are near.
inline constexpr double kWidthOfDraws = 4;

// Of all types. So small a step as f64's moves results in proportion: f32's, in parts.
struct Spreads {
  Spread f32, bf16;

  double of(const std::string& group, DType dtype, Measure measure) const;
};

// `results`: the part or model in float64 as it is run, with its parameters and inputs moved by the
// jitter. The result is compared with the one without jitter, so a fault in it does not count as
// rounding.
Spreads measure_spreads(const std::function<std::vector<Named>(const Jitter&)>& results);

}  // namespace heddle::check
