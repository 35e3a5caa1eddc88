// A checkpoint: one file with all that a run needs to go on as if nothing had happened.
//
// It is a safetensors file: the weights by their names, the optimiser's state under "optimizer.",
// and the state of the run in the metadata, with a checksum of all of it. One file appears by one
// rename, so that there is no such thing as a part of a checkpoint; the checksum is for what a disk
// or a copy does to it later. Checkpoints of before there was one are loaded unchecked.
#pragma once

#include <string>
#include <vector>

#include "nn/parameters.h"
#include "run/state.h"

namespace heddle::train {

// `optimizer` is the state of it, as Optimizer::state() has it.
void save_checkpoint(const std::string& path, const nn::Parameters& parameters,
                     const std::vector<nn::Parameter>& optimizer, const run::TrainState& state);

// Fills weights and optimiser. Throws Error naming file and tensor when one is missing, left over,
// or of another shape or type (shape_mismatch where the header is known to be intact), and when the
// checksum is not that of what was read; weights and optimiser may then hold anything.
run::TrainState load_checkpoint(const std::string& path, nn::Parameters& parameters,
                                const std::vector<nn::Parameter>& optimizer);

}  // namespace heddle::train
