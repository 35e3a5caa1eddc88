// The progress of a training run (run/train_state.h), as text and in its checkpoints.
#pragma once

#include <optional>
#include <string>

#include "io/safetensors/safetensors.h"
#include "run/run_directory.h"
#include "run/train_state.h"

namespace heddle::run {

// One line of JSON and back, exact to the bit. `where` names the file for errors.
std::string to_json(const TrainState& state);
TrainState state_from_json(const std::string& json, const std::string& where);

// Its key in the metadata of a checkpoint (train/checkpoint.h).
inline constexpr const char* kStateKey = "heddle.state";
TrainState state_of(const io::SafetensorsFile& checkpoint);
// Where the run of a checkpoint stood; weights and optimiser are not read.
TrainState read_state(const std::string& path);
// Where the newest checkpoint stood whose state can be read; damaged ones are passed over.
std::optional<TrainState> newest_state(const RunPaths& paths);

}  // namespace heddle::run
