// A batch in parts that are computed one after the other, and what a batch counts.
#pragma once

#include <cstdint>
#include <vector>

#include "model/batch.h"
#include "model/config.h"

namespace heddle::optim {

// Rows of a batch as a batch of their own: views, nothing is copied.
model::Batch rows_of(const model::Batch& batch, std::int64_t begin, std::int64_t end);

// At most `parts` parts of nearly equal size, in order. Those in which no target counts are left
// out: they have nothing to say.
std::vector<model::Batch> split(const model::Batch& batch, std::int64_t parts);

std::int64_t sequences_of(const model::Batch& batch);

// Tokens that the model reads: padding does not count, both sides of a pair do, and an image has as
// many as it has patches.
std::int64_t tokens_of(const model::Batch& batch, const model::ModelConfig& config);

}  // namespace heddle::optim
