// A model's choices one by one, by the keys of recipes, as far as they change results: what two
// configurations differ in, however they were written down.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"

namespace heddle::pretrained {

struct Axis {
  std::string name, value;
};

// Defaults are spelt out, numbers have six digits (GGUF keeps them in f32), and rotary positions
// are their angles. Which rows of a head they pair is left out: rows can be put in the other order.
std::vector<Axis> axes_of(const model::ModelConfig& config);

struct Difference {
  std::string name, wanted, got;
};
std::vector<Difference> differences(const model::ModelConfig& wanted,
                                    const model::ModelConfig& got);

}  // namespace heddle::pretrained
