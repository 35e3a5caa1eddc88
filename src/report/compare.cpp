#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/file.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/numbers.h"
#include "report/stacked_bars.h"
#include "report/training.h"

namespace heddle::report {

namespace {

using train::ComparisonResults;
using train::CurvePoint;
using train::Noise;
using train::PairResult;
using train::VariantResult;
using train::Verdict;

constexpr std::size_t kMostInMatrix = 12;  // variants whose pairs are all shown

std::string milliseconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string loss_text(const VariantResult& v, const ComparisonResults& r) {
  if (!v.diverged.empty()) return train::divergence_text(v, r.seeds);
  return v.spread ? fmt::format("{:.4f} ± {:.4f}", v.mean, *v.spread)
                  : fmt::format("{:.4f}", v.mean);
}

Series series_of(const std::string& name, const std::vector<CurvePoint>& curve) {
  Series s;
  s.name = name;
  for (const CurvePoint& p : curve) {
    s.points.push_back({p.step, p.loss});
    if (p.spread) s.band.push_back({p.step, p.loss - *p.spread, p.loss + *p.spread});
  }
  return s;
}

// Above this a variant that diverged is not drawn: next to what it came to, the others would be
// one flat line.
double highest_loss(const ComparisonResults& r, std::vector<CurvePoint> VariantResult::* curve) {
  double highest = -std::numeric_limits<double>::infinity();
  for (const VariantResult& v : r.variants)
    if (v.diverged.empty())
      for (const CurvePoint& p : v.*curve) highest = std::max(highest, p.loss);
  return std::isfinite(highest) ? highest : std::numeric_limits<double>::infinity();
}

std::vector<CurvePoint> drawn(const VariantResult& v, const std::vector<CurvePoint>& curve,
                              double highest) {
  if (v.diverged.empty()) return curve;
  std::vector<CurvePoint> kept;
  for (const CurvePoint& p : curve)
    if (p.loss <= highest) kept.push_back({p.step, p.loss});
  return kept;
}

Html curves(const ComparisonResults& r, std::vector<CurvePoint> VariantResult::* curve,
            const char* label) {
  LineChart c{.x_label = "step", .y_label = label, .series = {}};
  const double highest = highest_loss(r, curve);
  for (const VariantResult& v : r.variants)
    c.series.push_back(series_of(v.diverged.empty() ? v.name : v.name + " (diverged)",
                                 drawn(v, v.*curve, highest)));
  return chart(c);
}

Html figures(const ComparisonResults& r) {
  Table t{{"variant", r.validation ? "validation loss" : "training loss", "steps", "time per step",
           "tokens/s", "peak memory", "cache per token", "parameters", "FLOPs per step"},
          {}};
  for (std::size_t i = 0; i < r.variants.size(); ++i) {
    const VariantResult& v = r.variants[i];
    const bool timed = v.step_seconds > 0;
    t.rows.push_back(
        {v.name + (i == r.best ? " ★" : ""), loss_text(v, r), fmt::format("{}", v.steps),
         timed ? milliseconds(v.step_seconds) : "–", timed ? count_text(v.tokens_per_s) : "–",
         v.peak_bytes > 0 ? bytes_text(static_cast<double>(v.peak_bytes)) : "–",
         v.kv_bytes_per_token > 0 ? bytes_text(static_cast<double>(v.kv_bytes_per_token)) : "–",
         count_text(static_cast<double>(v.parameters)), count_text(v.flops_per_step)});
  }
  return table(t);
}

// Nothing but points: a series for each variant, so that it has its colour and its name.
Html against_loss(const ComparisonResults& r, const char* label,
                  double (*value)(const VariantResult&)) {
  LineChart c{.x_label = label, .y_label = "final loss", .series = {}};
  c.named_points = true;
  for (const VariantResult& v : r.variants) {
    c.series.push_back({.name = v.name, .points = {}});
    if (v.diverged.empty()) c.series.back().points.push_back({value(v), v.mean});
  }
  return chart(c);
}

Html memory_bars(const ComparisonResults& r) {
  StackedBars c{.parts = {}, .bars = {}, .text = bytes_text};
  for (int i = 0; i < kPurposeCount; ++i) c.parts.emplace_back(to_string(static_cast<Purpose>(i)));
  for (const VariantResult& v : r.variants) {
    if (v.peak_bytes == 0) continue;  // not measured
    StackedBar bar{v.name, {}};
    for (const std::int64_t bytes : v.peak_by_purpose)
      bar.parts.push_back(static_cast<double>(bytes));
    c.bars.push_back(bar);
  }
  return stacked_bars(c);
}

Html time_bars(const ComparisonResults& r) {
  StackedBars c{.parts = {}, .bars = {}, .text = milliseconds};
  for (const VariantResult& v : r.variants)
    if (v.step_seconds > 0) c.bars.push_back({v.name, {v.step_seconds}});
  return stacked_bars(c);
}

std::string time_in_words(const PairResult& p) {
  const double ratio = std::exp(p.time.mean);
  if (!p.time.interval) return fmt::format("{:.2f} times the time", ratio);
  const bool more = p.time.verdict == Verdict::exceeds_noise;
  return fmt::format("{:.2f} times the time ({:.2f} to {:.2f}){}", ratio,
                     std::exp(p.time.mean - *p.time.interval),
                     std::exp(p.time.mean + *p.time.interval), more ? "" : ", within the noise");
}

std::string noise_note(const ComparisonResults& r) {
  if (r.noise == Noise::seeds)
    return fmt::format(
        "± is the 95 % interval of Student's t over the {} seeds: runs with the same seed read the "
        "same batches and are compared with each other. One pair in twenty exceeds it by chance.",
        r.seeds);
  if (r.noise == Noise::evaluation)
    return "One seed: ± is the 95 % interval over the batches of the evaluation, on which the "
           "models are compared. How much another seed would change is not in it, so that nothing "
           "is said about the variants: --seeds 3 measures that.";
  return "One seed and no validation data: there is nothing to estimate the noise from. --seeds 3 "
         "measures it.";
}

// Against the first variant, in words, and all pairs as a table.
Html verdicts(const ComparisonResults& r) {
  std::string list = "<ul>\n";
  for (const VariantResult& v : r.variants)
    if (!v.diverged.empty()) list += "<li>" + escaped(divergence_in_words(v, r.seeds)) + "</li>\n";
  for (const PairResult& p : r.pairs)
    if (p.a == r.base())
      list +=
          "<li>" + escaped(in_words(p, r)) + " A step takes " +
          escaped(time_in_words({p.b, p.a, {}, {-p.time.mean, p.time.interval, p.time.verdict}})) +
          ".</li>\n";
  std::vector<Html> parts = {{list + "</ul>\n"}, paragraph(noise_note(r))};
  if (r.pairs.size() > 1 && r.variants.size() <= kMostInMatrix) {
    Table t{{"variant", "against", "difference of loss", "verdict"}, {}};
    for (const PairResult& p : r.pairs)
      t.rows.push_back({r.variants[p.b].name, r.variants[p.a].name,
                        p.loss.interval ? fmt::format("{} ± {:.4f}", signed_text(-p.loss.mean, 4),
                                                      *p.loss.interval)
                                        : signed_text(-p.loss.mean, 4),
                        std::string(to_string(p.loss.verdict))});
    parts.push_back(table(t));
  }
  return join(parts);
}

}  // namespace

std::string divergence_in_words(const VariantResult& v, std::int64_t seeds) {
  return v.name + " " + train::divergence_text(v, seeds) + ": " + v.diverged.front().at.reason +
         ". It takes no part in the verdicts.";
}

std::string in_words(const PairResult& p, const ComparisonResults& r) {
  const std::string &base = r.variants[p.a].name, &other = r.variants[p.b].name;
  const double worse = -p.loss.mean;  // of b, less that of a
  if (p.loss.verdict == Verdict::same) return other + " does not differ from " + base + ".";
  std::string text = fmt::format("{} is {} than {} by {:.4f}", other,
                                 worse > 0 ? "worse" : "better", base, std::abs(worse));
  if (p.loss.interval) text += fmt::format(" ± {:.4f}", *p.loss.interval);
  switch (p.loss.verdict) {
    case Verdict::exceeds_noise: return text + ": more than the noise.";
    case Verdict::models_differ:
      return text +
             ": these two models differ on this text; whether the variants do, one seed cannot "
             "tell.";
    case Verdict::within_noise: return text + ": within the noise, no difference is shown.";
    default: return text + ": one seed cannot tell whether that is noise.";
  }
}

std::string comparison_page(const ComparisonResults& r) {
  Page page("Comparing " + r.recipe,
            fmt::format("{} variants, {} seed{}, {} each, in turns", r.variants.size(), r.seeds,
                        r.seeds == 1 ? "" : "s", r.budget));
  if (r.best) {
    const VariantResult& best = r.variants[*r.best];
    page.add(facts({{"lowest loss", fmt::format("{:.4f}", best.mean)},
                    {"by", best.name},
                    {"loss", r.validation ? "validation, nats" : "last tenth of training, nats"}}));
  }
  page.add(section("What differs", verdicts(r)));
  if (!r.same_batches)
    page.add(section("Not the same batches",
                     paragraph("The variants have different batch sizes, so that their steps read "
                               "different parts of the same data.")));
  page.add(
      section("Figures", join({figures(r), paragraph("★ lowest loss; ± deviation over seeds")})));
  page.add(section("Training loss", curves(r, &VariantResult::curve, "loss, nats")));
  bool evaluated = false;
  for (const VariantResult& v : r.variants) evaluated = evaluated || v.validation.size() > 1;
  if (evaluated)
    page.add(section("Validation loss", curves(r, &VariantResult::validation, "loss, nats")));
  page.add(section("Peak memory of a step", memory_bars(r)));
  page.add(section("Time of a step, median", time_bars(r)));
  page.add(section("Loss against time", against_loss(r, "milliseconds per step", [](const auto& v) {
                     return 1e3 * v.step_seconds;
                   })));
  page.add(section("Loss against memory", against_loss(r, "peak memory, MB", [](const auto& v) {
                     return static_cast<double>(v.peak_bytes) / 1e6;
                   })));
  return page.html();
}

std::string write_comparison_report(const std::string& directory,
                                    const ComparisonResults& results) {
  for (const VariantResult& v : results.variants)
    for (const std::string& run : v.runs)
      write_training_report(fmt::format("{}/{}", directory, run));
  const std::string path = directory + "/index.html";
  io::write_file_atomic(path, comparison_page(results));
  return path;
}

}  // namespace heddle::report
