// Leaving elements out at random.
#pragma once

#include "heddle/random.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// y[i] = x[i] / (1 - q), or 0 with probability q: p to the nearest 1/65536, but not to 0 or 1.
// Dropped are elements whose 16 bits are below q·65536: halves of the key's words in turn, lower
// ones first. The backward pass draws the mask again. p = 0 gives x, p = 1 zeros; outside of [0, 1]
// is an Error.
Tensor dropout(const Tensor& x, double p, const RandomKey& key);

// x times a mask that the host makes.
namespace reference {
Tensor dropout(const Tensor& x, double p, const RandomKey& key);
}  // namespace reference

}  // namespace heddle::ops
