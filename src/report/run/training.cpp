#include "report/run/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/files/file.h"
#include "language/language.h"
#include "report/charts/chart.h"
#include "report/charts/smooth.h"
#include "report/page/html.h"
#include "report/page/numbers.h"
#include "run/run_directory.h"

namespace heddle::report {

namespace {

Series series_of(const TrainingLog& log, std::string name, double TrainingLog::Step::* field) {
  Series s;
  s.name = std::move(name);
  s.points.reserve(log.steps.size());
  for (const TrainingLog::Step& step : log.steps) s.points.push_back({step.step, step.*field});
  return s;
}

// The curve as it is, pale, behind a smooth one; alone where it is too short to be smoothed.
std::vector<Series> training_loss(const TrainingLog& log) {
  Series noisy = series_of(log, tr("training"), &TrainingLog::Step::loss);
  if (!can_be_smoothed(noisy.points.size())) return {noisy};
  Series smooth{.name = tr("training, smoothed"), .points = smoothed(noisy.points)};
  noisy.thin = true;
  noisy.like = 0;
  return {smooth, noisy};
}

std::vector<Series> validation_loss(const TrainingLog& log) {
  Series eval;
  eval.name = tr("validation");
  eval.points.reserve(log.evals.size());
  for (const TrainingLog::Eval& e : log.evals) eval.points.push_back({e.step, e.loss});
  return {eval};
}

Html loss_of(std::vector<Series> series) {
  return chart({.x_label = tr("step"), .y_label = tr("loss, nats"), .series = std::move(series)});
}

// Training learns from smoothed labels, which no model can predict: its loss has another zero than
// that of validation, and one axis would tell of a gap that there is not.
Html apart(const RunView& run) {
  std::vector<Html> parts = {
      paragraph(tr("Two measures, two charts: the loss of training is against labels smoothed by "
                   "{}, that of validation against the labels themselves. Their heights cannot be "
                   "compared.",
                   run.label_smoothing)),
      heading(tr("Training, with smoothed labels")), loss_of(training_loss(run.log))};
  if (!run.log.evals.empty()) {
    parts.push_back(heading(tr("Validation, cross-entropy")));
    parts.push_back(loss_of(validation_loss(run.log)));
  }
  return join(parts);
}

Html losses(const RunView& run) {
  if (run.label_smoothing > 0) return apart(run);
  std::vector<Series> all = training_loss(run.log);
  if (!run.log.evals.empty()) all.insert(all.begin() + 1, validation_loss(run.log)[0]);
  Html body = loss_of(std::move(all));
  if (run.dropout && !run.log.evals.empty())
    body =
        join({body, paragraph(tr("Training has dropout and validation has none, so that the loss "
                                 "of training is the higher one of two equally good fits."))});
  return body;
}

Html small_chart(const TrainingLog& log, const std::string& label, bool logarithmic,
                 double TrainingLog::Step::* field) {
  LineChart c{.x_label = tr("step"), .y_label = label, .series = {series_of(log, label, field)}};
  c.log_y = logarithmic;
  return chart(c);
}

Html speed(const RunView& run) {
  const std::string label = run.unit.rate_title();
  Series s = series_of(run.log, label, &TrainingLog::Step::tokens_per_s);
  for (Point& p : s.points) p.y = run.unit.count(p.y);
  return chart({.x_label = tr("step"), .y_label = label, .series = {std::move(s)}});
}

std::string state_text(const RunView& run) {
  switch (run.state) {
    case RunState::running: return tr("running, step {} of {}", run.last_step(), run.steps);
    case RunState::finished: return tr("finished");
    case RunState::patience:
    case RunState::stopped: return stop_text(run);
  }
  return "";
}

// The median, as rank 0 sees it.
std::string communication_text(const TrainingLog& log) {
  const auto median = [&log](double TrainingLog::Step::* field) {
    std::vector<double> all;
    all.reserve(log.steps.size());
    for (const TrainingLog::Step& s : log.steps) all.push_back(s.*field);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  };
  return tr("{} sent, {:.3g} ms of waiting, {:.0f} % hidden behind computing",
            bytes_text(median(&TrainingLog::Step::sent_bytes)),
            1e3 * median(&TrainingLog::Step::communication_seconds),
            100 * median(&TrainingLog::Step::communication_hidden));
}

Html summary(const RunView& run) {
  const TrainingLog& log = run.log;
  std::vector<std::pair<std::string, std::string>> all;
  const auto add = [&all](std::string name, std::string value) {
    all.emplace_back(std::move(name), std::move(value));
  };
  if (!log.evals.empty()) {
    const auto best = run.best_evaluation();
    add(tr("best validation loss"), tr("{:.4f} (step {})", best->loss, best->step));
    add(tr("last validation loss"), fmt::format("{:.4f}", log.evals.back().loss));
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
    add(tr("last training loss"), fmt::format("{:.4f}", last.loss));
    add(tr("steps"), fmt::format("{}", last.step));
    add(run.unit.title(), count_text(run.unit.count(last.tokens)));
    add(tr("time"), duration_text(last.seconds));
    add(tr("{}, median", run.unit.rate_title()),
        count_text(run.unit.count(rates[rates.size() / 2])));
    add(tr("memory between steps"), bytes_text(bytes));
    if (last.sent_bytes > 0) add(tr("communication of a step"), communication_text(log));
  }
  return facts(all);
}

// "+12 %"
std::string error_of(double planned, double measured) {
  return signed_text(100 * (planned - measured) / measured, 1) + " %";
}

Html plan_table(const PlanAndOutcome& p) {
  Table t{{"", tr("planned"), tr("measured"), tr("error of the plan")}, {}};
  const auto memory = [&t](const std::string& name, std::int64_t planned, std::int64_t measured) {
    const auto a = static_cast<double>(planned), b = static_cast<double>(measured);
    t.rows.push_back(
        {name, bytes_text(a), bytes_text(b), measured > 0 ? error_of(a, b) : std::string("–")});
  };
  if (p.peak_bytes > 0) {
    memory(tr("memory at the peak of a step"), p.plan.memory.peak, p.peak_bytes);
    for (std::size_t i = 0; i < p.peak_by_purpose.size(); ++i)
      memory(tr("of it {}", purpose_text(static_cast<Purpose>(i))), p.plan.memory.at_peak[i],
             p.peak_by_purpose[i]);
  }
  if (p.plan.step_seconds > 0 && p.step_seconds > 0)
    t.rows.push_back({tr("time of a step (measured: median)"),
                      fmt::format("{:.4g} ms", 1e3 * p.plan.step_seconds),
                      fmt::format("{:.4g} ms", 1e3 * p.step_seconds),
                      error_of(p.plan.step_seconds, p.step_seconds)});
  if (t.rows.empty()) return paragraph(tr("Nothing was measured."));
  return join({table(t), paragraph(tr("Planned before the first step: memory by a step without "
                                      "numbers, time from this machine's speed at that moment."))});
}

}  // namespace

std::string training_page(const RunView& run, const PageOptions& options) {
  using Step = TrainingLog::Step;
  Page page(tr("Training {}", run.name), state_text(run));
  page.add(summary(run));
  page.add(section(tr("Loss"), losses(run)));
  page.add(
      section(tr("Learning rate"), small_chart(run.log, tr("learning rate"), false, &Step::lr)));
  page.add(
      section(tr("Size of the gradient"),
              small_chart(run.log, tr("global norm before clipping"), true, &Step::grad_norm)));
  page.add(section(tr("Speed"), speed(run)));
  if (run.plan) page.add(section(tr("Planned and measured"), plan_table(*run.plan)));
  page.add(section(tr("Recipe"), preformatted(run.recipe)));
  if (!options.script.empty()) page.add_script(options.script);
  return page.html();
}

std::string write_training_report(const std::string& directory, std::optional<RunState> state,
                                  const std::string& out) {
  const std::string path = out.empty() ? run::RunPaths{directory}.report() : out;
  io::write_file_atomic(path, training_page(view_run(directory, state)));
  return path;
}

}  // namespace heddle::report
