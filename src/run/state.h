// Where a training run stands, beside its weights and the optimiser's state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "heddle/memory.h"
#include "io/safetensors/safetensors.h"
#include "run/run_directory.h"

namespace heddle::run {

struct TrainState {
  std::int64_t step = 0;    // updates done
  std::int64_t tokens = 0;  // read by the model in all of them
  double seconds = 0;       // spent, by earlier sittings too

  // Evaluations: the best one, and how many there were since.
  double best_loss = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;  // 0: none yet
  std::int64_t stale = 0;

  // Steps since the last line of the log, so that the next one is the same after a resume.
  double loss_sum = 0;     // of loss · targets
  double loss_weight = 0;  // of targets

  // The step that took the most memory so far, and what for. 0: not measured.
  std::int64_t peak_bytes = 0;
  BytesByPurpose peak_by_purpose = {};  // these add up to it

  std::uint64_t log_bytes = 0;  // length of the log when this was saved
  std::uint64_t data = 0;       // fingerprint() of the data
  // The recipe in force, as TOML: what the run was begun with is known even where recipe.toml was
  // edited. Empty: a checkpoint of before it was kept.
  std::string recipe = {};
};

// One line of JSON and back, exact to the bit. `where` names the file for errors.
std::string to_json(const TrainState& state);
TrainState state_from_json(const std::string& json, const std::string& where);

// Under this name it stands in the metadata of a checkpoint (train/checkpoint.h).
inline constexpr const char* kStateKey = "heddle.state";
TrainState state_of(const io::SafetensorsFile& checkpoint);
// Where the run of a checkpoint stood; weights and optimiser are not read.
TrainState read_state(const std::string& path);
// Where the newest checkpoint stood whose state can be read; damaged ones are passed over.
std::optional<TrainState> newest_state(const RunPaths& paths);

}  // namespace heddle::run
