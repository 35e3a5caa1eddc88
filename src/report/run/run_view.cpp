#include "report/run/run_view.h"

#include <algorithm>
#include <filesystem>

#include "compare/statistics.h"
#include "heddle/error.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "io/toml/toml.h"
#include "language/language.h"
#include "plan/plan_run.h"
#include "recipe/recipe.h"
#include "run/run_directory.h"
#include "run/state.h"

namespace heddle::report {

namespace {

using run::RunPaths;

std::optional<PlanAndOutcome> plan_of(const RunPaths& paths, const TrainingLog& log) {
  const std::optional<plan::Plan> plan = plan::read_plan(paths.directory);
  if (!plan) return std::nullopt;
  PlanAndOutcome p{.plan = *plan};
  p.step_seconds = compare::median_of(run::step_seconds(log));
  if (const auto state = run::newest_state(paths)) {
    p.peak_bytes = state->peak_bytes;
    p.peak_by_purpose = state->peak_by_purpose;
  }
  return p;
}

void read_recipe(const RunPaths& paths, RunView& view) {
  view.recipe = io::without_seal(io::read_file(paths.recipe(), io::kMaxToml));
  const recipe::Recipe recipe = recipe::recipe_of_text(view.recipe, paths.recipe());
  view.steps = recipe.train.steps;
  view.patience = recipe.train.patience;
  view.unit = run::unit_of_run(paths.directory, recipe.model);
  view.label_smoothing = recipe.train.label_smoothing;
  view.dropout = recipe.model.dropout > 0 || recipe.model.embedding_dropout > 0 ||
                 recipe.model.attention.dropout > 0;
}

}  // namespace

std::int64_t RunView::last_step() const {
  const double steps_to = log.steps.empty() ? 0 : log.steps.back().step;
  const double evals_to = log.evals.empty() ? 0 : log.evals.back().step;
  return static_cast<std::int64_t>(std::max(steps_to, evals_to));
}

std::vector<TrainingLog::Eval>::const_iterator RunView::best_evaluation() const {
  return std::ranges::min_element(log.evals, {}, &TrainingLog::Eval::loss);
}

std::int64_t RunView::stale() const {
  return log.evals.empty() ? 0 : log.evals.end() - best_evaluation() - 1;
}

RunState state_at_rest(const RunView& view) {
  if (view.steps > 0 && view.last_step() >= view.steps) return RunState::finished;
  if (view.patience && view.stale() >= *view.patience) return RunState::patience;
  return RunState::stopped;
}

RunView view_run(const std::string& directory, std::optional<RunState> state) {
  run::check_is_directory(directory);
  if (io::file_exists(directory + "/compare.json"))
    fail(ErrorCode::io, directory, "is a comparison",
         "one of its runs, a directory below " + directory + "/runs");
  if (!run::is_run(directory))
    fail(ErrorCode::io, directory, "is not the directory of a run", "a file recipe.toml in it");
  const RunPaths paths{directory};
  RunView view;
  view.name = std::filesystem::absolute(directory).lexically_normal().filename().string();
  if (view.name.empty())  // "runs/mine/"
    view.name =
        std::filesystem::absolute(directory).lexically_normal().parent_path().filename().string();
  read_recipe(paths, view);
  if (io::file_exists(paths.log()))
    view.log = run::parse_training_log(io::read_file(paths.log(), run::kMostLog), paths.log());
  view.plan = plan_of(paths, view.log);
  if (state)
    view.state = *state;
  else
    view.state = run::is_locked(directory) ? RunState::running : state_at_rest(view);
  return view;
}

std::string stop_text(const RunView& run) {
  if (run.state != RunState::patience)
    return tr("stopped at step {} of {}", run.last_step(), run.steps);
  const std::int64_t stale = run.stale();
  return stale == 1 ? tr("stopped early: no better validation loss for 1 evaluation")
                    : tr("stopped early: no better validation loss for {} evaluations", stale);
}

}  // namespace heddle::report
