#include "report/run/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "language/language.h"
#include "language/layout.h"
#include "report/charts/smooth.h"
#include "report/page/numbers.h"
#include "report/run/terminal.h"

namespace heddle::report {

namespace {

constexpr std::size_t kLinesOfPace = 10;  // of the log, for the time that is left
constexpr std::size_t kMostChartRows = 14, kLeastChartRows = 3, kMostEvents = 6;

double share_of(const RunView& run) {
  return run.steps > 0 ? static_cast<double>(run.last_step()) / static_cast<double>(run.steps) : 0;
}

std::string left_text(const RunView& run) {
  const double left = run.state == RunState::running ? seconds_left(run) : 0;
  return left > 0 ? tr("{} left", duration_text(left)) : "";
}

std::vector<std::string> figures_of(const RunView& run) {
  std::vector<std::string> pieces;
  if (!run.log.steps.empty()) {
    const TrainingLog::Step& s = run.log.steps.back();
    pieces.insert(pieces.end(),
                  {tr("loss {:.4f}", s.loss), tr("learning rate {:.3g}", s.lr),
                   tr("gradient {:.3g}", s.grad_norm),
                   run.unit.rate_told(count_text(run.unit.count(s.tokens_per_s))),
                   run.unit.told(count_text(run.unit.count(s.tokens))), duration_text(s.seconds)});
  }
  if (!run.log.evals.empty()) {
    const auto best = run.best_evaluation();
    pieces.push_back(
        tr("validation {:.4f} at step {}", run.log.evals.back().loss, run.log.evals.back().step));
    pieces.push_back(tr("best {:.4f} at step {}", best->loss, best->step));
  }
  return pieces;
}

// Newest last; an evaluation before the checkpoint of its step.
std::vector<std::string> events_of(const WatchView& view, std::size_t most) {
  std::multimap<double, std::string> events;
  const auto& evals = view.run.log.evals;
  for (std::size_t i = evals.size() - std::min(evals.size(), most); i < evals.size(); ++i)
    events.emplace(evals[i].step, evaluation_line(view.run, i));
  for (const std::int64_t step : view.checkpoints)
    events.emplace(static_cast<double>(step), tr("step {}: checkpoint", step));
  std::vector<std::string> lines;
  lines.reserve(events.size());
  for (auto& [step, text] : events) lines.push_back(std::move(text));
  lines.erase(lines.begin(),
              lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), most)));
  return lines;
}

// Validation is drawn beside training where their losses mean the same.
TextChart loss_chart_of(const RunView& run) {
  TextChart c;
  std::vector<Point> noisy;
  noisy.reserve(run.log.steps.size());
  for (const TrainingLog::Step& s : run.log.steps) noisy.push_back({s.step, s.loss});
  c.line = smoothed(noisy);
  if (run.label_smoothing == 0)
    for (const TrainingLog::Eval& e : run.log.evals) c.marks.push_back({e.step, e.loss});
  return c;
}

std::string legend_of(const TextChart& c, const RunView& run) {
  const bool smooth = can_be_smoothed(run.log.steps.size());
  if (!c.marks.empty())
    return smooth ? tr("loss of training, smoothed; ● of validation")
                  : tr("loss of training; ● of validation");
  if (run.label_smoothing > 0)
    return tr("loss of training, with labels smoothed by {}", run.label_smoothing);
  return smooth ? tr("loss of training, smoothed") : tr("loss of training");
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

double seconds_left(const RunView& run) {
  const auto& steps = run.log.steps;
  if (steps.empty() || run.steps <= 0) return 0;
  const std::size_t from = steps.size() - std::min(steps.size(), kLinesOfPace + 1);
  // The first lines of a run have nothing before them but its beginning.
  const bool whole = steps.size() <= kLinesOfPace;
  const double step = whole ? 0 : steps[from].step, seconds = whole ? 0 : steps[from].seconds;
  if (steps.back().step <= step) return 0;
  const double each = (steps.back().seconds - seconds) / (steps.back().step - step);
  return std::max(0.0, each * (static_cast<double>(run.steps) - steps.back().step));
}

std::string step_line(const RunView& run) {
  std::vector<std::string> pieces = {tr("step {} of {}", run.last_step(), run.steps)};
  if (!run.log.steps.empty()) {
    const TrainingLog::Step& s = run.log.steps.back();
    append(pieces,
           {tr("loss {:.4f}", s.loss), tr("learning rate {:.3g}", s.lr),
            run.unit.rate_told(count_text(run.unit.count(s.tokens_per_s))), left_text(run)});
  }
  const std::vector<std::string> lines = packed(pieces, 1000);
  return lines.empty() ? "" : lines[0];
}

std::string evaluation_line(const RunView& run, std::size_t evaluation) {
  const auto& evals = run.log.evals;
  const TrainingLog::Eval& e = evals[evaluation];
  const bool best =
      std::none_of(evals.begin(), evals.begin() + static_cast<std::ptrdiff_t>(evaluation),
                   [&e](const TrainingLog::Eval& o) { return o.loss <= e.loss; });
  return best ? tr("step {}: validation loss {:.4f} (best)", e.step, e.loss)
              : tr("step {}: validation loss {:.4f}", e.step, e.loss);
}

std::string state_line(const RunView& run) {
  switch (run.state) {
    case RunState::running:
      return run.last_step() > 0 ? tr("running") : tr("running, nothing logged yet");
    case RunState::finished: return tr("finished after {} steps", run.last_step());
    case RunState::patience:
    case RunState::stopped: return stop_text(run);
  }
  return "";
}

std::vector<std::string> watch_screen(const WatchView& view, std::size_t columns,
                                      std::size_t rows) {
  const RunView& run = view.run;
  std::vector<std::string> lines = packed({tr("Training {}", run.name), state_line(run)}, columns);
  const std::string progress =
      fmt::format("{}  {:.0f} %  {}", tr("step {} of {}", run.last_step(), run.steps),
                  100 * share_of(run), left_text(run));
  const std::size_t beside = columns_of(progress) + 2;
  if (columns > beside + 10)
    lines.push_back(progress_bar(share_of(run), columns - beside) + "  " + progress);
  else
    lines.emplace_back(cut_to(progress, columns));
  append(lines, packed(figures_of(run), columns));
  const std::vector<std::string> events = events_of(view, kMostEvents);
  TextChart chart = loss_chart_of(run);
  chart.columns = columns;
  const std::size_t others = lines.size() + events.size() + 4;  // blanks, legend, x
  chart.rows = std::min(kMostChartRows, rows > others ? rows - others : 0);
  if (chart.rows >= kLeastChartRows) {
    std::vector<std::string> drawn = text_chart(chart);
    if (!drawn.empty()) {
      lines.emplace_back();
      append(lines, std::move(drawn));
      lines.emplace_back(cut_to(legend_of(chart, run), columns));
    }
  }
  if (!events.empty()) lines.emplace_back();
  for (const std::string& event : events) lines.emplace_back(cut_to(event, columns));
  if (lines.size() > rows) lines.resize(rows);
  return lines;
}

}  // namespace heddle::report
