// Facts that a GGUF file tells about a model by the tensors that it has, and nowhere else: how many
// rows the embeddings have, whether they are the classifier too, which products have biases,
// factors of rotary positions. A tensor that is then missing, or left over, is an error as in all
// files.
#pragma once

#include "model/config.h"
#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// Throws Error naming file and tensor.
void read_from_tensors(const WeightFiles& file, model::ModelConfig& config);

}  // namespace heddle::pretrained
