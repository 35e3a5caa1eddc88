// The rotation of a pair of elements.
#pragma once

#include <cmath>

#include "backend/cuda/instructions.cuh"

namespace heddle::cuda {

template <class C>
struct TurnedPair {
  C one, two;
};

// x1·c - x2·s and x2·c + x1·s. One product of each is rounded, the other is not, wherever it is
// compiled: kernels that turn keys on their way to somewhere else have the bits of rope.
template <class C>
__device__ TurnedPair<C> turned_pair(C x1, C x2, C c, C s) {
  return {std::fma(x1, c, -rounded_product(x2, s)), std::fma(x2, c, rounded_product(x1, s))};
}

}  // namespace heddle::cuda
