// Topics of experiments, in the order of the page.
#pragma once

#include "lab/experiment.h"

namespace heddle::lab::topics {

inline constexpr const char* recurrent = mark("Recurrent networks");
inline constexpr const char* scores = mark("Attention scores");
inline constexpr const char* heads = mark("Heads and masks");
inline constexpr const char* windows = mark("Sliding windows");
inline constexpr const char* exploration = mark("What attention can compute");
inline constexpr const char* positions = mark("Positions");
inline constexpr const char* cost = mark("Cost");
inline constexpr const char* building_blocks = mark("Building blocks");
inline constexpr const char* training = mark("Training");

}  // namespace heddle::lab::topics
