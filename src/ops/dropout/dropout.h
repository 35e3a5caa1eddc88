// Leaving elements out at random.
#pragma once

#include "heddle/random.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// y[i] = x[i] / (1 - p) with probability 1 - p, else 0. Element i is dropped when its word of the
// key's stream is below p·2^32, so the mask is never stored: the backward pass draws it again.
// p = 0 gives x itself, p = 1 zeros; anything outside of [0, 1] is an Error.
Tensor dropout(const Tensor& x, double p, const RandomKey& key);

}  // namespace heddle::ops
