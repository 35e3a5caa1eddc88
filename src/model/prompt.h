// Which part of a sequence is its prompt, for models with attention.prefix: the one place that
// decides it for all code that reads a sequence outside of training, with or without a cache. (In
// training the data says how long the prompts of its windows are.)
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/config.h"

namespace heddle::model {

// For Batch::prefix_lengths: `prompt` tokens of each of the sequences are seen both ways. [B] i64;
// undefined for a model that sees nothing both ways, which has no use for it.
Tensor prompt_lengths(const ModelConfig& config, std::int64_t sequences, std::int64_t prompt,
                      Device device = Device::cpu);

// Sequences whose first `prompt` tokens were given, and whose others the model has written after
// them: tokens [B, T], prompt 0 to T.
Batch prompted(const ModelConfig& config, const Tensor& tokens, std::int64_t prompt);

}  // namespace heddle::model
