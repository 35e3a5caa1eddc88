#include "report/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "heddle/error.h"
#include "io/files/file.h"
#include "language/language.h"
#include "language/layout.h"
#include "report/charts/chart.h"
#include "report/charts/dots.h"
#include "report/charts/stacked_bars.h"
#include "report/page/html.h"
#include "report/page/numbers.h"
#include "report/run/training.h"
#include "run/run_directory.h"

namespace heddle::report {

namespace {

using compare::ComparisonResults;
using compare::CurvePoint;
using compare::PairResult;
using compare::VariantResult;

constexpr std::size_t kMostInMatrix = 12;  // variants whose pairs are all shown

Series series_of(const std::string& name, const std::vector<CurvePoint>& curve) {
  Series s;
  s.name = name;
  for (const CurvePoint& p : curve) {
    s.points.push_back({p.step, p.loss});
    if (p.spread) s.band.push_back({p.step, p.loss - *p.spread, p.loss + *p.spread});
  }
  return s;
}

using Curve = std::vector<CurvePoint> VariantResult::*;

// Values that a chart need not show: next to a variant that went astray, the others would be one
// flat line. Curves reach up to about where they began, and of several variants most begin alike;
// so the limit is half as high again as the highest point of the usual one. A variant that diverged
// does not count unless all did.
double robust_top(const ComparisonResults& r, Curve curve) {
  std::vector<double> highest, all;
  double lowest = std::numeric_limits<double>::infinity();
  for (const VariantResult& v : r.variants) {
    double most = -std::numeric_limits<double>::infinity();
    for (const CurvePoint& p : v.*curve) {
      if (!std::isfinite(p.loss)) continue;
      most = std::max(most, p.loss);
      lowest = std::min(lowest, p.loss);
    }
    if (!std::isfinite(most)) continue;
    all.push_back(most);
    if (v.diverged.empty()) highest.push_back(most);
  }
  std::vector<double>& counted = highest.empty() ? all : highest;
  if (counted.empty()) return std::numeric_limits<double>::infinity();
  const auto middle = counted.begin() + static_cast<std::ptrdiff_t>((counted.size() - 1) / 2);
  std::ranges::nth_element(counted, middle);
  return lowest + 1.5 * (*middle - lowest);
}

// The part of a line below the top, up to where it crosses it.
std::vector<Point> below(const std::vector<Point>& points, double top) {
  std::vector<Point> kept;
  kept.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool high = points[i].y > top, was_high = i > 0 && points[i - 1].y > top;
    if (i > 0 && high != was_high) {
      const Point &p = points[i - 1], &q = points[i];
      kept.push_back({p.x + (top - p.y) / (q.y - p.y) * (q.x - p.x), top});
    }
    if (!high) kept.push_back(points[i]);
  }
  return kept;
}

// A line that is above the top somewhere, or ends in what is no number, is named at the edge.
void mark_leaving(Series& s, const VariantResult& v, const ComparisonResults& r, double top) {
  const auto over = std::ranges::find_if(s.points, [top](const Point& p) { return p.y > top; });
  if (over != s.points.end())
    s.leaves = {over->x, tr("{}: up to {:.4g}", v.name,
                            std::ranges::max_element(s.points, {}, &Point::y)->y)};
  if (!v.diverged.empty() && !s.points.empty())
    s.leaves = {over != s.points.end() ? over->x : s.points.back().x,
                fmt::format("{}: {}", v.name, divergence_text(v, r.seeds))};
  s.points = below(s.points, top);
}

Html curves(const ComparisonResults& r, Curve curve) {
  LineChart c{.x_label = tr("step"), .y_label = tr("loss, nats"), .series = {}};
  c.top = robust_top(r, curve);
  for (const VariantResult& v : r.variants) {
    Series s = series_of(v.diverged.empty() ? v.name : tr("{} (diverged)", v.name), v.*curve);
    mark_leaving(s, v, r, c.top);
    c.series.push_back(std::move(s));
  }
  return chart(c);
}

Html losses_of_seeds(const ComparisonResults& r) {
  DotRows rows{.label = r.validation ? tr("validation loss, nats") : tr("training loss, nats"),
               .rows = {}};
  for (const VariantResult& v : r.variants) {
    const compare::Difference95 own = compare::judge(v.losses);
    DotRow row{.name = v.name, .values = v.diverged.empty() ? v.losses : std::vector<double>()};
    // Two seeds give an interval of twelve times their spread: it would be all there is to see.
    if (v.losses.size() > 2) row.interval = own.interval;
    row.instead = divergence_text(v, r.seeds);
    rows.rows.push_back(std::move(row));
  }
  return join({dot_rows(rows),
               paragraph(r.seeds > 2 ? tr("A dot for each seed; the stroke is their mean, the bar "
                                          "its 95 % interval. Variants are compared seed by seed, "
                                          "which tells more than whether bars overlap.")
                                     : tr("A dot for each seed; the stroke is their mean."))});
}

Html figures(const ComparisonResults& r) {
  Table t{{tr("variant"), r.validation ? tr("validation loss") : tr("training loss"), tr("steps"),
           tr("time per step"), r.unit_of(r.variants[0]).rate_title(), tr("peak memory"),
           tr("cache per token"), tr("parameters"), tr("FLOPs per step")},
          {}};
  for (std::size_t i = 0; i < r.variants.size(); ++i) {
    const VariantResult& v = r.variants[i];
    const bool timed = v.step_seconds > 0;
    t.rows.push_back(
        {v.name + (i == r.best ? "\u00a0★" : ""), loss_text(v), fmt::format("{}", v.steps),
         time_text(v), timed ? count_text(r.unit_of(v).count(v.tokens_per_s)) : "–",
         v.peak_bytes > 0 ? bytes_text(static_cast<double>(v.peak_bytes)) : "–",
         v.kv_bytes_per_token > 0 ? bytes_text(static_cast<double>(v.kv_bytes_per_token)) : "–",
         count_text(static_cast<double>(v.parameters)), count_text(v.flops_per_step)});
  }
  return table(t);
}

// Nothing but points: a series for each variant, so that it has its colour and its name.
Html against_loss(const ComparisonResults& r, const std::string& label,
                  double (*value)(const VariantResult&)) {
  LineChart c{.x_label = label, .y_label = tr("final loss"), .series = {}};
  c.named_points = true;
  for (const VariantResult& v : r.variants) {
    c.series.push_back({.name = v.name, .points = {}});
    if (v.diverged.empty()) c.series.back().points.push_back({value(v), v.mean});
  }
  return chart(c);
}

Html memory_bars(const ComparisonResults& r) {
  StackedBars c{.parts = {}, .bars = {}, .text = bytes_text};
  for (int i = 0; i < kPurposeCount; ++i) c.parts.push_back(purpose_text(static_cast<Purpose>(i)));
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
  StackedBars c{.parts = {}, .bars = {}, .text = step_time_text};
  for (const VariantResult& v : r.variants)
    if (v.step_seconds > 0) c.bars.push_back({v.name, {v.step_seconds}});
  return stacked_bars(c);
}

// Against the first variant, in words, and all pairs as a table.
Html verdicts(const ComparisonResults& r) {
  std::string list = "<ul>\n";
  bool suggests = false;
  for (const VariantResult& v : r.variants)
    if (!v.diverged.empty()) list += "<li>" + unbroken(divergence_in_words(v, r.seeds)) + "</li>\n";
  for (const PairResult& p : r.pairs) {
    if (p.a != r.base()) continue;
    const std::string seeds = seeds_in_words(p, r);
    suggests = suggests || !seeds.empty();
    list +=
        fmt::format("<li>{}</li>\n", sentences(sentences(unbroken(in_words(p, r)), unbroken(seeds)),
                                               unbroken(time_in_words(p, r))));
  }
  std::vector<Html> parts = {{list + "</ul>\n"}, paragraph(noise_note(r))};
  if (suggests) parts.push_back(paragraph(seeds_formula()));
  if (r.pairs.size() > 1 && r.variants.size() <= kMostInMatrix) {
    Table t{{tr("variant"), tr("against"), tr("difference of loss"), tr("verdict")}, {}};
    for (const PairResult& p : r.pairs)
      t.rows.push_back({r.variants[p.b].name, r.variants[p.a].name,
                        difference_text({-p.loss.mean, p.loss.interval, p.loss.verdict}),
                        verdict_text(p.loss.verdict)});
    parts.push_back(table(t));
  }
  return join(parts);
}

Html effects(const ComparisonResults& r) {
  std::vector<std::vector<std::string>> rows = effects_table(r);
  Table t{rows[0], {rows.begin() + 1, rows.end()}};
  return join({table(t), paragraph(effects_note(r))});
}

std::string subtitle(const ComparisonResults& r) {
  if (!r.timing.in_turns())
    return r.seeds == 1 ? tr("{} variants, 1 seed, {} each, on {} ranks", r.variants.size(),
                             r.budget, r.timing.ranks)
                        : tr("{} variants, {} seeds, {} each, on {} ranks", r.variants.size(),
                             r.seeds, r.budget, r.timing.ranks);
  return r.seeds == 1
             ? tr("{} variants, 1 seed, {} each, in turns", r.variants.size(), r.budget)
             : tr("{} variants, {} seeds, {} each, in turns", r.variants.size(), r.seeds, r.budget);
}

}  // namespace

std::string comparison_page(const ComparisonResults& r) {
  Page page(tr("Comparing {}", r.recipe), subtitle(r));
  if (r.best) {
    const VariantResult& best = r.variants[*r.best];
    page.add(facts({{tr("lowest loss"), fmt::format("{:.4f}", best.mean)},
                    {tr("by"), best.name},
                    {tr("loss"),
                     r.validation ? tr("validation, nats") : tr("last tenth of training, nats")}}));
  }
  page.add(section(tr("What differs"), verdicts(r)));
  if (!r.effects.empty()) page.add(section(tr("What each key does"), effects(r)));
  if (!r.same_batches)
    page.add(section(tr("Not the same batches"),
                     paragraph(tr("The variants have different batch sizes, so that their steps "
                                  "read different parts of the same data."))));
  page.add(section(tr("Figures"), join({figures(r), paragraph(figures_note(r, "★"))})));
  if (r.seeds > 1) page.add(section(tr("Final loss, seed by seed"), losses_of_seeds(r)));
  page.add(section(tr("Training loss"), curves(r, &VariantResult::curve)));
  bool evaluated = false;
  for (const VariantResult& v : r.variants) evaluated = evaluated || v.validation.size() > 1;
  if (evaluated) page.add(section(tr("Validation loss"), curves(r, &VariantResult::validation)));
  page.add(section(tr("Peak memory of a step"), memory_bars(r)));
  page.add(section(tr("Time of a step, median"), time_bars(r)));
  page.add(section(tr("Loss against time"),
                   against_loss(r, tr("milliseconds per step"),
                                [](const auto& v) { return 1e3 * v.step_seconds; })));
  page.add(
      section(tr("Loss against memory"), against_loss(r, tr("peak memory, MB"), [](const auto& v) {
                return static_cast<double>(v.peak_bytes) / 1e6;
              })));
  return page.html();
}

std::string write_comparison_report(const std::string& directory, const ComparisonResults& results,
                                    const std::string& out) {
  for (const VariantResult& v : results.variants)
    for (const std::string& run : v.runs)
      write_training_report(fmt::format("{}/{}", directory, run));
  const std::string path = out.empty() ? directory + "/index.html" : out;
  io::write_file_atomic(path, comparison_page(results));
  return path;
}

std::vector<std::string> write_report(const std::string& directory, const std::string& out) {
  namespace fs = std::filesystem;
  run::check_is_directory(directory);
  if (!io::file_exists(directory + "/compare.json"))
    return {write_training_report(directory, {}, out)};
  if (io::file_exists(directory + "/results.json"))
    return {write_comparison_report(directory, compare::read_results(directory), out)};
  if (!out.empty())
    fail(ErrorCode::io, directory,
         "is a comparison that is not done yet, without a page of its own",
         "one of its runs, a directory below " + directory + "/runs, or no --out");
  std::vector<std::string> written;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory + "/runs", error))
    if (entry.is_directory() && run::is_run(entry.path().string()))
      written.push_back(write_training_report(entry.path().string()));
  std::ranges::sort(written);
  return written;
}

}  // namespace heddle::report
