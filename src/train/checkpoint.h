// A checkpoint: one file with all that a run needs to go on as if nothing had happened.
//
// It is a safetensors file: the weights by their names, the optimiser's state under "optimizer.",
// and the state of the run in the metadata, with a checksum of all of it. One file appears by one
// rename, so that there is no such thing as a part of a checkpoint; the checksum is for what a disk
// or a copy does to it later. Checkpoints of before there was one are loaded unchecked.
#pragma once

#include <optional>
#include <string>

#include "io/safetensors.h"
#include "nn/parameters.h"
#include "train/optimizer.h"
#include "train/run_directory.h"
#include "train/state.h"

namespace heddle::train {

void save_checkpoint(const std::string& path, const nn::ParameterStore& parameters,
                     const Optimizer& optimizer, const TrainState& state);

// Fills weights and optimiser. Throws Error naming file and tensor when one is missing, left over,
// or of another shape or type (shape_mismatch where the header is known to be intact), and when the
// checksum is not that of what was read; weights and optimiser may then hold anything.
TrainState load_checkpoint(const std::string& path, nn::ParameterStore& parameters,
                           Optimizer& optimizer);

// Where the run of a checkpoint stood; weights and optimiser are not read.
TrainState read_state(const std::string& path);
// Where the newest checkpoint stood whose state can be read; damaged ones are passed over.
std::optional<TrainState> newest_state(const RunPaths& paths);

// The weights alone, for use: model.safetensors.
void save_weights(const std::string& path, const nn::ParameterStore& parameters);

// Reads the weights once and throws Error when the file has a checksum and it is not theirs.
void check_weights(const io::SafetensorsFile& file);

// Gives a model the weights of a file as it is built, after check_weights(). Call finish()
// afterwards: a tensor of the file that no parameter asked for is an Error.
class WeightSource {
 public:
  explicit WeightSource(const std::string& path) : file_(path) { check_weights(file_); }

  nn::ParameterSource source();
  void finish() const;
  const io::SafetensorsFile& file() const { return file_; }

 private:
  io::SafetensorsFile file_;
  std::vector<std::string> asked_for_;
};

}  // namespace heddle::train
