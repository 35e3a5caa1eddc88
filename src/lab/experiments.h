// The list of experiments. Each has its file: elman-and is src/lab/elman_and.cpp.
#pragma once

#include <vector>

#include "lab/experiment.h"

namespace heddle::lab {

// In the order of the page.
const std::vector<Experiment>& experiments();

Experiment head_split();

}  // namespace heddle::lab
