// The learning rate of each step.
#pragma once

#include <cstdint>

#include "recipe/train_config.h"

namespace heddle::optim {

// With s = step (from 1), w = warmup, n = steps, r = learning_rate and f = final_share:
//   up to s = w:    r · s / w
//   constant:       r
//   inverse-sqrt:   r · √(w / s)      (w at least 1)
//   linear:         r · (1 - (1 - f) · p)
//   cosine:         r · (f + (1 - f) · (1 + cos(π p)) / 2)
// where p = (s - w) / (n - w) goes from 0 at the end of the warm-up to 1 at the last step. With
// f = 0 a last step would do nothing, so there p = (s - w) / (n - w + 1): the rate would be 0 one
// step later, as with PyTorch's schedules.
double learning_rate_at(const recipe::TrainConfig& config, std::int64_t step);

}  // namespace heddle::optim
