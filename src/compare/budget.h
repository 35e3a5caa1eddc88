// The budget of each variant: "steps=200", "tokens=1M", "time=60s", "flops=1e12".
//
// Whatever its unit, it becomes a number of steps before training begins, because the learning rate
// depends on it.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::compare {

struct Budget {
  enum class Kind : std::uint8_t { steps, tokens, seconds, flops };
  Kind kind = Kind::steps;
  double amount = 0;
  std::string text;  // as it was written
};

// Amounts may end in k, M, G or T; times in s, min or h. Error saying what may be written.
Budget parse_budget(const std::string& text);

// The cost of a step of a variant.
struct StepCost {
  double tokens = 0;
  double flops = 0;
  double seconds = 0;
};

// Whole steps that the budget is enough for. Error when that is none, naming the variant.
std::int64_t steps_of(const Budget& budget, const StepCost& cost, const std::string& variant);

}  // namespace heddle::compare
