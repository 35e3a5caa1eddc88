// A run as its files tell it, while it goes on as well as afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "run/log/log.h"
#include "run/unit.h"

namespace heddle::report {

using run::TrainingLog;

enum class RunState : std::uint8_t {
  running,   // a process has its lock
  finished,  // all steps are done
  patience,  // evaluations stopped getting better
  stopped,   // interrupted, killed or failed: it can go on
};

// The plan from before the run began, and the cost of its steps.
struct PlanAndOutcome {
  plan::Plan plan;
  std::int64_t peak_bytes = 0;  // 0: not measured
  BytesByPurpose peak_by_purpose = {};
  double step_seconds = 0;  // median; 0: not measured
};

struct RunView {
  std::string name;  // of its directory
  TrainingLog log;
  std::string recipe = {};                    // its text
  std::int64_t steps = 0;                     // that were asked for; 0: not known
  std::optional<std::int64_t> patience = {};  // train.patience
  run::Unit unit = {"tokens"};                // what a reader counts where the log counts tokens
  double label_smoothing = 0;
  bool dropout = false;  // in training there is some
  std::optional<PlanAndOutcome> plan = {};
  RunState state = RunState::stopped;

  std::int64_t last_step() const;  // of its log; 0: none yet
  // Of log.evals; the end where there are none.
  std::vector<TrainingLog::Eval>::const_iterator best_evaluation() const;
  // Evaluations since the best one.
  std::int64_t stale() const;
};

// Reads log.jsonl, recipe.toml, plan.json and the newest checkpoint. A run that has not logged
// anything yet has an empty log. The state is `state`, or else what lock, log and recipe tell.
RunView view_run(const std::string& directory, std::optional<RunState> state = {});

// The state of a run that no process has.
RunState state_at_rest(const RunView& view);

// Why and where a run ended before its last step, for people.
std::string stop_text(const RunView& run);

}  // namespace heddle::report
