// Parameters as a safetensors file, and back: for models of one's own. (Runs of `heddle train` have
// files of their own kind around it: run/weights.h.)
#pragma once

#include <string>

#include "nn/parameters.h"

namespace heddle::nn {

// Whole or not at all, under the parameters' full names.
void save(const std::string& path, const Parameters& parameters);

// Fills parameters that exist. Throws Error naming file and tensor when one is missing, left over,
// or of another shape or type; nothing is changed then.
void load(const std::string& path, Parameters& parameters);

}  // namespace heddle::nn
