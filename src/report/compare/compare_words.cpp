// The findings of a comparison, in sentences and in the cells of tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "language/language.h"
#include "language/layout.h"
#include "report/compare/compare.h"
#include "report/page/numbers.h"

namespace heddle::report {

using compare::ComparisonResults;
using compare::Difference95;
using compare::MainEffect;
using compare::Noise;
using compare::PairResult;
using compare::VariantResult;
using compare::Verdict;

namespace {

// The one verdict that a sentence gives: a difference, or none.
std::string clear_difference(const std::string& other, const std::string& base, double worse,
                             double interval) {
  return worse > 0 ? tr("{} is worse than {} by {:.4f} ± {:.4f}: more than the noise.", other, base,
                        worse, interval)
                   : tr("{} is better than {} by {:.4f} ± {:.4f}: more than the noise.", other,
                        base, -worse, interval);
}

std::string difference_of_models(const std::string& other, const std::string& base, double worse,
                                 double interval) {
  return worse > 0
             ? tr("On this text the model of {} has a loss {:.4f} ± {:.4f} higher than that of {}; "
                  "whether the variants differ, one seed cannot tell.",
                  other, worse, interval, base)
             : tr("On this text the model of {} has a loss {:.4f} ± {:.4f} lower than that of {}; "
                  "whether the variants differ, one seed cannot tell.",
                  other, -worse, interval, base);
}

// Three digits that count, zeros too: 8.60 beside 8.58.
std::string three_digits(double value) {
  if (value < 0.9995) return fmt::format("{:.3g}", value);
  const int behind_point = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, behind_point);
}

// Of all seeds that diverged, the one that did so first.
const auto& first_divergence(const VariantResult& v) {
  return std::ranges::min_element(v.diverged, {}, [](const auto& d) { return d.at.step; })->at;
}

}  // namespace

std::string difference_text(const Difference95& d) {
  return d.interval ? fmt::format("{} ± {:.4f}", signed_text(d.mean, 4), *d.interval)
                    : signed_text(d.mean, 4);
}

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return tr("the same");
    case Verdict::within_noise: return tr("within the noise");
    case Verdict::exceeds_noise: return tr("more than the noise");
    case Verdict::models_differ: return tr("these two models differ");
    case Verdict::unknown: break;
  }
  return tr("not known");
}

std::string in_words(const PairResult& p, const ComparisonResults& r) {
  const std::string &base = r.variants[p.a].name, &other = r.variants[p.b].name;
  const double worse = -p.loss.mean;  // of b, less that of a
  const double interval = p.loss.interval.value_or(0);
  switch (p.loss.verdict) {
    case Verdict::same: return tr("{} does not differ from {}.", other, base);
    case Verdict::exceeds_noise: return clear_difference(other, base, worse, interval);
    case Verdict::models_differ: return difference_of_models(other, base, worse, interval);
    case Verdict::within_noise:
      return tr("No difference between {} and {} is shown: {} ± {:.4f} is within the noise.", other,
                base, signed_text(worse, 4), interval);
    case Verdict::unknown: break;
  }
  return tr("The loss of {} less that of {} is {}; one seed cannot tell whether that is noise.",
            other, base, signed_text(worse, 4));
}

std::string seeds_in_words(const PairResult& p, const ComparisonResults& r) {
  if (r.noise != Noise::seeds || p.loss.verdict != Verdict::within_noise) return "";
  if (const auto n = compare::seeds_to_separate(p.loss, r.seeds))
    return tr("If it is as large as it seems, about {} seeds would show it.", *n);
  return tr("If it is as large as it seems, more than {} seeds would be needed to show it.",
            compare::kMostSeeds);
}

std::string seeds_formula() {
  return tr(
      "How many seeds would show a difference d: the least n with (t95 + t60) · s / √n ≤ |d|, "
      "where s is the spread of the differences as measured and t is Student's with n − 1 "
      "degrees of freedom. That finds it in four of five comparisons.");
}

std::string divergence_text(const VariantResult& v, std::int64_t seeds) {
  if (v.diverged.empty()) return "";
  const std::int64_t step = first_divergence(v).step;
  return seeds > 1 ? tr("diverged at step {} ({} of {} seeds)", step, v.diverged.size(), seeds)
                   : tr("diverged at step {}", step);
}

std::string divergence_in_words(const VariantResult& v, std::int64_t seeds) {
  return tr("{} {}: {}. It takes no part in the verdicts.", v.name, divergence_text(v, seeds),
            first_divergence(v).translated());
}

std::string time_in_words(const PairResult& p, const ComparisonResults& r) {
  if (!r.timing.in_turns()) return "";  // of other ranks as much as of other variants
  const std::string& base = r.variants[p.a].name;
  const double ratio = std::exp(-p.time.mean);  // of b's step to a's
  if (!p.time.interval) return tr("A step takes {:.2f} times as long as that of {}.", ratio, base);
  const double low = std::exp(-p.time.mean - *p.time.interval),
               high = std::exp(-p.time.mean + *p.time.interval);
  if (p.time.verdict == Verdict::exceeds_noise)
    return tr("A step takes {:.2f} times as long as that of {} ({:.2f} to {:.2f}).", ratio, base,
              low, high);
  return tr(
      "In time no difference is shown: a step takes {:.2f} to {:.2f} times as long as that of "
      "{}.",
      low, high, base);
}

std::string noise_note(const ComparisonResults& r) {
  if (r.noise == Noise::seeds)
    return tr(
        "± is the 95 % interval of Student's t over the {} seeds: runs with the same seed read "
        "the same batches and are compared with each other. One pair in twenty exceeds it by "
        "chance.",
        r.seeds);
  if (r.noise == Noise::evaluation)
    return tr(
        "One seed: ± is the 95 % interval over the batches of the evaluation, on which the "
        "models are compared. How much another seed would change is not in it, so that nothing "
        "is said about the variants: --seeds 3 measures that.");
  return tr(
      "One seed and no validation data: there is nothing to estimate the noise from. --seeds 3 "
      "measures it.");
}

std::string figures_note(const ComparisonResults& r, const char* star) {
  const std::string note =
      r.seeds == 1
          ? tr("{} lowest loss; times are medians, with the middle half of them in brackets.", star)
          : tr("{} lowest loss; here ± is the standard deviation over the seeds; times are "
               "medians, with the middle half of them in brackets.",
               star);
  return sentences(note, timing_note(r));
}

std::string timing_note(const ComparisonResults& r) {
  const compare::Timing& t = r.timing;
  if (t.in_turns()) return "";
  return t.hosts.size() == 1
             ? tr("Times were not taken in turns: {} ranks on one machine had runs of their own, "
                  "at once, so that times of variants cannot be compared.",
                  t.ranks)
             : tr("Times were not taken in turns: {} ranks on {} machines had runs of their own, "
                  "at once, so that times of variants cannot be compared.",
                  t.ranks, t.hosts.size());
}

std::string loss_text(const VariantResult& v) {
  // In how many seeds is told in words: a cell is narrow.
  if (!v.diverged.empty()) return tr("diverged at step {}", first_divergence(v).step);
  return v.spread ? fmt::format("{:.4f} ± {:.4f}", v.mean, *v.spread)
                  : fmt::format("{:.4f}", v.mean);
}

std::string step_time_text(double seconds) {
  return seconds < 1 ? three_digits(1e3 * seconds) + " ms" : tr("{} s", three_digits(seconds));
}

std::string time_text(const VariantResult& v) {
  if (v.step_seconds <= 0) return "–";
  if (v.step_high <= 0) return step_time_text(v.step_seconds);
  const double scale = v.step_seconds < 1 ? 1e3 : 1;
  return tr("{} ({} to {})", step_time_text(v.step_seconds), three_digits(scale * v.step_low),
            three_digits(scale * v.step_high));
}

std::vector<std::vector<std::string>> effects_table(const ComparisonResults& r) {
  if (r.effects.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{tr("recipe key"), tr("value"), tr("against"),
                                                 tr("difference of loss"), tr("over the others"),
                                                 tr("verdict"), tr("time")}};
  for (const MainEffect& e : r.effects)
    rows.push_back({e.key, e.value, e.against, difference_text(e.loss),
                    tr("{} to {}", signed_text(e.lowest, 4), signed_text(e.highest, 4)),
                    verdict_text(e.loss.verdict),
                    e.time_ratio > 0 ? fmt::format("{:.2f} ×", e.time_ratio) : "–"});
  return rows;
}

std::string effects_note(const ComparisonResults& r) {
  std::string what =
      tr("Each key by itself: the difference of its value to the first one, averaged over all "
         "settings of the other keys; how much it depends on them is beside it.");
  if (r.noise == Noise::seeds) return what;
  return sentences(what, tr("One seed: whether it is noise is not known."));
}

}  // namespace heddle::report
