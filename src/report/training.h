// report.html of a run: what happened, as curves.
#pragma once

#include <optional>
#include <string>

#include "train/log.h"
#include "train/plan.h"

namespace heddle::report {

using train::parse_training_log;
using train::TrainingLog;

// What was planned before the run began, and what its steps took.
struct PlanAndOutcome {
  train::Plan plan;
  std::int64_t peak_bytes = 0;  // 0: not measured
  BytesByPurpose peak_by_purpose = {};
  double step_seconds = 0;  // median; 0: not measured
};

// The page. `recipe` is its text.
std::string training_page(const std::string& name, const TrainingLog& log,
                          const std::string& recipe,
                          const std::optional<PlanAndOutcome>& plan = {});

// Reads log.jsonl, recipe.toml, plan.json and the newest checkpoint of a run directory and writes
// its report.html; returns its path.
std::string write_training_report(const std::string& directory);

}  // namespace heddle::report
