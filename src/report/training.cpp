#include "report/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io/file.h"
#include "io/seal.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/numbers.h"
#include "train/checkpoint.h"
#include "train/compare/statistics.h"
#include "train/plan_run.h"
#include "train/run_directory.h"

namespace heddle::report {

namespace {

using train::kMostLog;
constexpr double kPointsPerMean =
    50;  // a fiftieth of a long log is averaged, nothing of a short one

template <class Get>
Series series_of(const TrainingLog& log, std::string name, Get get) {
  Series s;
  s.name = std::move(name);
  for (const TrainingLog::Step& step : log.steps) s.points.push_back({step.step, get(step)});
  return s;
}

Series smoothed(const Series& noisy) {
  Series s;
  s.name = "training, smoothed";
  const double share = 1 / (1 + static_cast<double>(noisy.points.size()) / kPointsPerMean);
  double mean = 0, weight = 0;
  for (const Point& p : noisy.points) {
    mean += share * (p.y - mean);
    weight += share * (1 - weight);
    s.points.push_back({p.x, mean / weight});
  }
  return s;
}

Html loss_chart(const TrainingLog& log) {
  LineChart c{.x_label = "step", .y_label = "loss, nats", .series = {}};
  const Series noisy = series_of(log, "training", [](const auto& s) { return s.loss; });
  c.series.push_back(smoothed(noisy));
  Series eval;
  eval.name = "validation";
  for (const TrainingLog::Eval& e : log.evals) eval.points.push_back({e.step, e.loss});
  if (!eval.points.empty()) c.series.push_back(eval);
  c.series.push_back(noisy);
  c.series.back().thin = true;
  return chart(c);
}

template <class Get>
Html small_chart(const TrainingLog& log, const char* label, bool logarithmic, Get get) {
  LineChart c{.x_label = "step", .y_label = label, .series = {series_of(log, label, get)}};
  c.log_y = logarithmic;
  return chart(c);
}

Html summary(const TrainingLog& log) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto add = [&all](const char* name, std::string value) {
    all.emplace_back(name, std::move(value));
  };
  if (!log.evals.empty()) {
    const auto best =
        std::min_element(log.evals.begin(), log.evals.end(),
                         [](const auto& a, const auto& b) { return a.loss < b.loss; });
    add("best validation loss", fmt::format("{:.4f} (step {})", best->loss, best->step));
    add("last validation loss", fmt::format("{:.4f}", log.evals.back().loss));
  }
  if (!log.steps.empty()) {
    const TrainingLog::Step& last = log.steps.back();
    double bytes = 0;
    std::vector<double> rates;
    for (const TrainingLog::Step& s : log.steps) {
      bytes = std::max(bytes, s.live_bytes);
      rates.push_back(s.tokens_per_s);
    }
    std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2),
                     rates.end());
    add("last training loss", fmt::format("{:.4f}", last.loss));
    add("steps", fmt::format("{}", last.step));
    add("tokens", count_text(last.tokens));
    add("time", duration_text(last.seconds));
    add("tokens/s, median", count_text(rates[rates.size() / 2]));
    add("memory between steps", bytes_text(bytes));
  }
  return facts(all);
}

// "+12 %"
std::string error_of(double planned, double measured) {
  return signed_text(100 * (planned - measured) / measured, 1) + " %";
}

Html plan_table(const PlanAndOutcome& p) {
  Table t{{"", "planned", "measured", "error of the plan"}, {}};
  const auto memory = [&t](const std::string& name, std::int64_t planned, std::int64_t measured) {
    const auto a = static_cast<double>(planned), b = static_cast<double>(measured);
    t.rows.push_back(
        {name, bytes_text(a), bytes_text(b), measured > 0 ? error_of(a, b) : std::string("–")});
  };
  if (p.peak_bytes > 0) {
    memory("memory at the peak of a step", p.plan.memory.peak, p.peak_bytes);
    for (std::size_t i = 0; i < p.peak_by_purpose.size(); ++i)
      memory("of it " + std::string(to_string(static_cast<Purpose>(i))), p.plan.memory.at_peak[i],
             p.peak_by_purpose[i]);
  }
  if (p.plan.step_seconds > 0 && p.step_seconds > 0)
    t.rows.push_back({"time of a step (measured: median)",
                      fmt::format("{:.4g} ms", 1e3 * p.plan.step_seconds),
                      fmt::format("{:.4g} ms", 1e3 * p.step_seconds),
                      error_of(p.plan.step_seconds, p.step_seconds)});
  if (t.rows.empty()) return paragraph("Nothing was measured.");
  return join({table(t), paragraph("Planned before the first step: memory by a step without "
                                   "numbers, time from this machine's speed at that moment.")});
}

std::optional<PlanAndOutcome> plan_of(const std::string& directory, const TrainingLog& log) {
  const std::optional<train::Plan> plan = train::read_plan(directory);
  if (!plan) return std::nullopt;
  PlanAndOutcome p{.plan = *plan};
  p.step_seconds = train::median_of(train::step_seconds(log));
  const train::RunPaths paths{directory};
  if (const auto state = train::newest_state(paths)) {
    p.peak_bytes = state->peak_bytes;
    p.peak_by_purpose = state->peak_by_purpose;
  }
  return p;
}

}  // namespace

std::string training_page(const std::string& name, const TrainingLog& log,
                          const std::string& recipe, const std::optional<PlanAndOutcome>& plan) {
  Page page("Training " + name, "What the run logged, step by step");
  page.add(summary(log));
  page.add(section("Loss", loss_chart(log)));
  page.add(section("Learning rate",
                   small_chart(log, "learning rate", false, [](const auto& s) { return s.lr; })));
  page.add(section("Size of the gradient", small_chart(log, "global norm before clipping", true,
                                                       [](const auto& s) { return s.grad_norm; })));
  page.add(section("Speed", small_chart(log, "tokens per second", false,
                                        [](const auto& s) { return s.tokens_per_s; })));
  if (plan) page.add(section("Planned and measured", plan_table(*plan)));
  page.add(section("Recipe", preformatted(recipe)));
  return page.html();
}

std::string write_training_report(const std::string& directory) {
  const std::filesystem::path root(directory);
  const std::string log_path = (root / "log.jsonl").string();
  const TrainingLog log = parse_training_log(io::read_file(log_path, kMostLog), log_path);
  const std::string recipe(
      io::without_seal(io::read_file((root / "recipe.toml").string(), kMostLog)));
  const std::string name = std::filesystem::absolute(root).lexically_normal().filename().string();
  const std::string path = (root / "report.html").string();
  io::write_file_atomic(path, training_page(name, log, recipe, plan_of(directory, log)));
  return path;
}

}  // namespace heddle::report
