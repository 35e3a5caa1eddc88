// The plan of a whole run: of a recipe, its data and this machine. What was planned is kept in the
// run's directory (plan.json), so that the report can show it beside what happened.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "train/plan.h"
#include "train/recipe.h"

namespace heddle::train {

// Texts have one shape; sentences have many.
struct BatchShapes {
  BatchShape largest;  // memory is for the worst of them,
  BatchShape mean;     // time for the usual one
};

// Of the first batches of an epoch.
BatchShapes batch_shapes(const data::Dataset& data, const TrainConfig& config);
// Without reading any data: what the recipe alone says.
BatchShapes batch_shapes(const Recipe& recipe);

// What this machine can do right now; takes a third of a second. Zeros where there is no probe.
MachineSpeed measure_machine(DType precision);

// `recipe.model.sizes` must be known. Memory and arithmetic are of the largest batch, the time is
// of the usual one.
Plan plan_run(const Recipe& recipe, const BatchShapes& shapes, const MachineSpeed& machine);

// What this machine has, swap included.
std::int64_t machine_memory();
// Throws Error where the largest step needs more than the machine has: the system would end it
// without a word. `recipe.model.sizes` must be known.
void check_fits(const Recipe& recipe, const data::Dataset& data);

// {"parameters","flops_per_step","peak_bytes":{..},"step_seconds","kv_bytes_per_token"}: figures
// that are not known are absent.
nlohmann::json to_json(const Plan& plan);

// {"total", and one for each purpose}.
nlohmann::json bytes_json(std::int64_t total, const BytesByPurpose& by_purpose);

void write_plan(const std::string& run_directory, const Plan& plan);
// Nothing where none was written; Error where it is damaged.
std::optional<Plan> read_plan(const std::string& run_directory);
// Whether there is one that can be read. A damaged plan is told and counts as none: it is a help
// for the report, and no run has to stop for it.
bool has_plan(const std::string& run_directory,
              const std::function<void(const std::string& sentence)>& on_damage);

}  // namespace heddle::train
