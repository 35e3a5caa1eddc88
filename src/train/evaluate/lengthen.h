// Batches of short sequences with more padding.
#pragma once

#include <cstdint>

#include "model/batch.h"

namespace heddle::train {

// Sequences, and those of the other side, have `least` places or more; added places count for
// nothing. A batch of images stays as it is.
model::Batch lengthened(const model::Batch& batch, std::int64_t least);

}  // namespace heddle::train
