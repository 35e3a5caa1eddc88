// The plan of a whole run: of a recipe, its data and this machine. It is kept in the run's
// directory (plan.json), so that the report can show it next to the measurements.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "plan/plan.h"
#include "plan/process.h"
#include "recipe/recipe.h"

namespace heddle::plan {

// Texts have one shape; sentences have many.
struct BatchShapes {
  BatchShape largest;  // memory is for the worst of them,
  BatchShape mean;     // time for the usual one
};

// Of the first batches of an epoch.
BatchShapes batch_shapes(const data::Dataset& data, const recipe::TrainConfig& config);
// Without reading any data: what the recipe alone says.
BatchShapes batch_shapes(const recipe::Recipe& recipe);

// The machine's current speed, for a run of so many bytes; measured in an eighth of a second. Zeros
// where there is no probe or no memory for it.
MachineSpeed measure_machine(DType precision, std::int64_t bytes);
using MachineProbe = std::function<MachineSpeed(DType precision, std::int64_t bytes)>;

// A run, planned once: whether it fits, its forecast and its duration all follow from
// this.
struct RunPlan {
  Plan largest;  // memory and arithmetic are of the largest batch,
  Plan usual;    // the time is of the usual one

  Plan on(const MachineSpeed& machine) const;  // the largest, with that time
};
// `recipe.model.sizes` must be known.
RunPlan plan_run(const recipe::Recipe& recipe, const BatchShapes& shapes, int ranks = 1);

// The machine's speed for the run: measured by the probe where the run is on the CPU. The speed of
// other devices is not measured.
std::optional<MachineSpeed> speed_for(const recipe::TrainConfig& config, const RunPlan& plan,
                                      const MachineProbe& probe);

// The peak that the products of the run are compared with: known where the machine was measured for
// its plan, else measured now, in a twentieth of a second. Absent where there is no probe.
std::optional<double> peak_flops(const recipe::TrainConfig& config,
                                 const std::optional<MachineSpeed>& measured);

// Facts reported about a run before it begins.
struct Forecast {
  Plan plan;
  ProcessMemory process;
  std::optional<MachineSpeed> machine = {};
};
// `data` is what this process has read of it: nothing where it is null.
Forecast forecast(const recipe::Recipe& recipe, const RunPlan& plan, const data::Dataset* data,
                  const MachineProbe& probe);

// Whether a process fits into this many bytes, and the largest batch whose process would.
struct Fit {
  std::int64_t room = 0;
  bool fits = false;
  std::int64_t largest_batch = 0;  // 0: not even one sequence
};
// `largest` is the shape of the largest batch; `recipe.model.sizes` must be known. A batch is
// planned some twenty times, on the device that computes nothing.
Fit fit_into(const recipe::Recipe& recipe, const BatchShape& largest, const ProcessMemory& process,
             std::int64_t room, int ranks = 1);

// The same for tensors of a step on a device of their own.
Fit fit_onto_device(const recipe::Recipe& recipe, const BatchShape& largest, const Plan& plan,
                    std::int64_t room);

// Throws Error where the largest step and the data need more than this process may have: the system
// would end it without a word.
void check_fits(const recipe::Recipe& recipe, const data::Dataset& data, const RunPlan& plan);

// {"parameters","flops_per_step","peak_bytes":{..},"step_seconds","kv_bytes_per_token"}: figures
// that are not known are absent.
nlohmann::json to_json(const Plan& plan);

// {"total", and one for each purpose}.
nlohmann::json bytes_json(std::int64_t total, const BytesByPurpose& by_purpose);

// With what is expected of the process, under "process_peak_bytes".
void write_plan(const std::string& run_directory, const Plan& plan,
                const std::optional<ProcessMemory>& process = {});
// Nothing where none was written; Error where it is damaged.
std::optional<Plan> read_plan(const std::string& run_directory);
// Whether there is one that can be read. A damaged plan is reported and counts as none: it is a
// help for the report, and no run has to stop for it.
bool has_plan(const std::string& run_directory,
              const std::function<void(const std::string& sentence)>& on_damage);

}  // namespace heddle::plan
