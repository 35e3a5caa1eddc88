#include "compare/budget.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "heddle/error.h"

namespace heddle::compare {

namespace {

constexpr double kMostSteps = 2147483648.0;  // as of train.steps

struct BudgetUnit {
  std::string_view name;
  double factor;
};
constexpr std::array<BudgetUnit, 5> kCounts = {
    {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
constexpr std::array<BudgetUnit, 3> kTimes = {{{"s", 1}, {"min", 60}, {"h", 3600}}};

[[noreturn]] void refuse(const std::string& text) {
  fail(ErrorCode::invalid_argument, "--budget", "is not a budget",
       "steps=200, tokens=1M, time=60s (or min, h) or flops=1e12", "\"" + text + "\"");
}

double parse_amount(std::string_view amount, std::span<const BudgetUnit> units,
                    const std::string& text) {
  double number = 0;
  const auto parsed = std::from_chars(amount.data(), amount.data() + amount.size(), number);
  const std::string_view rest(parsed.ptr,
                              static_cast<std::size_t>(amount.data() + amount.size() - parsed.ptr));
  if (parsed.ec != std::errc() || !std::isfinite(number) || number <= 0) refuse(text);
  for (const BudgetUnit& unit : units)
    if (rest == unit.name) return number * unit.factor;
  refuse(text);
}

double cost_of(Budget::Kind kind, const StepCost& cost) {
  switch (kind) {
    case Budget::Kind::steps: return 1;
    case Budget::Kind::tokens: return cost.tokens;
    case Budget::Kind::seconds: return cost.seconds;
    case Budget::Kind::flops: return cost.flops;
  }
  return 1;
}

}  // namespace

Budget parse_budget(const std::string& text) {
  using Kind = Budget::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds = {{{"steps", Kind::steps},
                                                                        {"tokens", Kind::tokens},
                                                                        {"time", Kind::seconds},
                                                                        {"flops", Kind::flops}}};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(text);
  const std::string_view name = std::string_view(text).substr(0, equals);
  const std::string_view amount = std::string_view(text).substr(equals + 1);
  for (const auto& [known, kind] : kKinds) {
    if (name != known) continue;
    const std::span<const BudgetUnit> units = kind == Kind::seconds
                                                  ? std::span<const BudgetUnit>(kTimes)
                                                  : std::span<const BudgetUnit>(kCounts);
    return {kind, parse_amount(amount, units, text), text};
  }
  refuse(text);
}

std::int64_t steps_of(const Budget& budget, const StepCost& cost, const std::string& variant) {
  const double steps = std::floor(budget.amount / cost_of(budget.kind, cost));
  if (!(steps >= 1) || steps > kMostSteps)
    fail(ErrorCode::invalid_argument, "--budget",
         budget.text + " is " + (steps >= 1 ? "too much" : "less than one step") + " for variant " +
             variant,
         "between 1 and 2^31 steps");
  return static_cast<std::int64_t>(steps);
}

}  // namespace heddle::compare
