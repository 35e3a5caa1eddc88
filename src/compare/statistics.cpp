#include "compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace heddle::compare {

namespace {

constexpr double kConfidence = 0.95;

// Continued fraction of the incomplete beta function (modified Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 500;
  const auto nonzero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return h;
}

// I_x(a, b), regularised.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// P(|T| <= t) = 1 - I_{n / (n + t²)}(n / 2, 1 / 2)
double within(double t, double degrees) {
  return 1 - incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

}  // namespace

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double quantile_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

std::optional<double> deviation_of(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double student_t(double confidence, double degrees) {
  double low = 0, high = 1;
  while (within(high, degrees) < confidence && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (within(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

std::optional<std::int64_t> seeds_to_separate(const Difference95& difference, std::int64_t pairs) {
  constexpr double kFourOfFive = 0.6;  // of both sides: 0.8 of one
  if (!difference.interval || pairs < 2 || difference.mean == 0) return std::nullopt;
  const auto count = static_cast<double>(pairs);
  const double spread = *difference.interval * std::sqrt(count) / student_t(kConfidence, count - 1);
  for (std::int64_t n = 2; n <= kMostSeeds; ++n) {
    const auto seeds = static_cast<double>(n);
    const double t = student_t(kConfidence, seeds - 1) + student_t(kFourOfFive, seeds - 1);
    if (t * spread / std::sqrt(seeds) <= std::abs(difference.mean)) return n;
  }
  return std::nullopt;
}

// The weighted mean m = Σ w d / Σ w, and as its variance Σ w² (d − m)² / (Σ w)² · n / (n − 1).
Difference95 judge(std::span<const double> differences, std::span<const double> weights) {
  Difference95 out;
  const std::size_t n = differences.size();
  if (n == 0) return out;
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += weight(i) * differences[i];
    all += weight(i);
  }
  out.mean = sum / all;
  const bool same = std::ranges::all_of(differences, [](double d) { return d == 0; });
  if (n >= 2) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double off = weight(i) * (differences[i] - out.mean);
      squares += off * off;
    }
    const auto count = static_cast<double>(n);
    const double error = std::sqrt(squares / (all * all) * count / (count - 1));
    out.interval = student_t(kConfidence, count - 1) * error;
  }
  if (same)
    out.verdict = Verdict::same;
  else if (out.interval)
    out.verdict =
        std::abs(out.mean) > *out.interval ? Verdict::exceeds_noise : Verdict::within_noise;
  return out;
}

}  // namespace heddle::compare
