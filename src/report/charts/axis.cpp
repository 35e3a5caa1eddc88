#include "report/charts/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace heddle::report {

namespace {

int exponent_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
}

bool is_power_of_ten(double value) {
  return value > 0 && std::abs(value / std::pow(10.0, exponent_of(value)) - 1) < 1e-9;
}

struct Unit {
  double size = 1;
  std::string name = {};
};

Unit unit_for(double largest) {
  if (largest >= 1e9) return {1e9, " G"};
  if (largest >= 1e6) return {1e6, " M"};
  if (largest >= 1e4) return {1e3, " k"};
  // A power of ten for all, so that the digits of all ticks are few.
  if (largest < 1e-3 && largest > 0) {
    const int exponent = exponent_of(largest);
    return {std::pow(10.0, exponent), "×" + power_of_ten(exponent)};
  }
  return {};
}

// Digits behind the point that tell every tick from its neighbours.
int digits_for(std::span<const double> ticks, double unit) {
  for (int digits = 0; digits < 9; ++digits) {
    const double scale = std::pow(10.0, digits);
    const bool exact = std::all_of(ticks.begin(), ticks.end(), [&](double t) {
      const double v = t / unit * scale;
      return std::abs(v - std::round(v)) < 1e-6 * std::max(1.0, std::abs(v));
    });
    if (exact) return digits;
  }
  return 9;
}

}  // namespace

std::string power_of_ten(int exponent) {
  static constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                          "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent)))
    out += kDigits[static_cast<std::size_t>(c - '0')];
  return out;
}

std::string scientific(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.{}f}", value, digits);
  int exponent = exponent_of(value);
  std::string factor = fmt::format("{:.{}f}", value / std::pow(10.0, exponent), digits);
  if (factor.starts_with("10") || factor.starts_with("-10"))  // 9.99 was rounded up
    factor = fmt::format("{:.{}f}", value / std::pow(10.0, ++exponent), digits);
  return factor + "×" + power_of_ten(exponent);
}

std::vector<std::string> tick_texts(std::span<const double> ticks) {
  std::vector<std::string> texts;
  texts.reserve(ticks.size());
  if (ticks.empty()) return texts;
  const bool powers = ticks.size() > 1 && std::all_of(ticks.begin(), ticks.end(), is_power_of_ten);
  if (powers) {
    const auto [low, high] = std::minmax_element(ticks.begin(), ticks.end());
    const bool plain = *low > 0.9e-3 && *high < 1.1e4;
    for (const double t : ticks)
      texts.push_back(plain ? fmt::format("{:g}", t) : power_of_ten(exponent_of(t)));
    return texts;
  }
  double largest = 0;
  for (const double t : ticks) largest = std::max(largest, std::abs(t));
  const Unit unit = unit_for(largest);
  const int digits = digits_for(ticks, unit.size);
  for (const double t : ticks) {
    // Zero has no unit, and no sign that rounding left of it.
    const bool zero = std::abs(t) < 1e-9 * largest || t == 0;
    texts.push_back(zero ? "0" : fmt::format("{:.{}f}{}", t / unit.size, digits, unit.name));
  }
  return texts;
}

}  // namespace heddle::report
