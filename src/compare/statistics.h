// Which differences are more than noise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heddle::compare {

double mean_of(std::span<const double> values);  // 0 of none
double median_of(std::vector<double> values);    // 0 of none
// The value below which this share of them is, interpolated between two neighbours; 0 if there are
// none.
double quantile_of(std::vector<double> values, double share);
// Sample standard deviation; nothing for fewer than two.
std::optional<double> deviation_of(std::span<const double> values);

// The t with P(|T| <= t) = confidence for Student's distribution. Degrees of freedom from 1.
double student_t(double confidence, double degrees);

enum class Verdict : std::uint8_t {
  same,           // the difference is exactly zero, everywhere
  within_noise,   // zero is within the interval
  exceeds_noise,  // it does not
  models_differ,  // it does not, but the interval has no luck of seeds in it: these two models
                  // differ on this text, which says little about their variants
  unknown,        // there is nothing to estimate noise from
};

struct Difference95 {
  double mean = 0;
  // Half of the 95 % interval; absent with fewer than two pairs.
  std::optional<double> interval = {};
  Verdict verdict = Verdict::unknown;
};

// How many seeds would tell a difference from noise, if it is as large as it seems (d) and the
// differences of pairs scatter as they did (s): the least n with
//   (t95 + t60) · s / √n <= |d|,   t of Student's distribution with n - 1 degrees of freedom,
// which finds it in four of five comparisons (t60, of both sides, is the 80 % quantile of one).
// `pairs` is how many there were. Nothing where the spread is not known, the difference is exactly
// zero, or more than kMostSeeds would be needed.
inline constexpr std::int64_t kMostSeeds = 1000;
std::optional<std::int64_t> seeds_to_separate(const Difference95& difference, std::int64_t pairs);

// Of pairs' differences, each weighing as much as its weight says; no weights: all alike.
Difference95 judge(std::span<const double> differences, std::span<const double> weights = {});

}  // namespace heddle::compare
