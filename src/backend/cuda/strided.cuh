// N arrays of one shape and any strides, walked together.
#pragma once

#include <cstdint>

#include "heddle/shape.h"

namespace heddle::cuda {

// Dimensions are merged where all arrays step through them evenly; sizes of 1 are left out.
template <int N>
struct Walk {
  int rank = 0;
  bool small = true;  // element numbers fit into 32 bits: divisions of 64 are slow
  std::int64_t count = 1;
  std::int64_t size[kMaxRank];
  std::int64_t stride[N][kMaxRank];

  Walk(const Shape& shape, const Strides* const (&strides)[N]) {
    for (int i = 0; i < shape.rank(); ++i) {
      count *= shape[i];
      if (shape[i] == 1) continue;
      bool merges = rank > 0;
      for (int n = 0; n < N && merges; ++n)
        merges = stride[n][rank - 1] == shape[i] * (*strides[n])[i];
      if (merges)
        size[rank - 1] *= shape[i];
      else
        size[rank++] = shape[i];
      for (int n = 0; n < N; ++n) stride[n][rank - 1] = (*strides[n])[i];
    }
    small = count < (std::int64_t{1} << 31);
  }

  // All are dense in the order of the walk.
  bool plain() const {
    if (rank > 1) return false;
    for (int n = 0; n < N; ++n)
      if (rank == 1 && stride[n][0] != 1) return false;
    return true;
  }

  // Whether vectors of `each` neighbours, which are dense in all of them, cover the walk and begin
  // at multiples of `each` elements everywhere.
  bool comes_in(int each) const {
    if (rank == 0 || size[rank - 1] % each != 0) return false;
    for (int n = 0; n < N; ++n) {
      if (stride[n][rank - 1] != 1) return false;
      for (int d = 0; d + 1 < rank; ++d)
        if (stride[n][d] % each != 0) return false;
    }
    return true;
  }

  // The walk from vector to vector; offsets stay in elements.
  Walk in_vectors(int each) const {
    Walk vectors = *this;
    vectors.count /= each;
    vectors.size[rank - 1] /= each;
    for (int n = 0; n < N; ++n) vectors.stride[n][rank - 1] = each;
    return vectors;
  }

  __device__ void offsets(std::int64_t i, std::int64_t (&at)[N]) const {
    for (int n = 0; n < N; ++n) at[n] = 0;
    auto rest = static_cast<std::uint32_t>(i);
    for (int d = rank - 1; d >= 0; --d) {
      std::int64_t own;
      if (small) {
        const auto length = static_cast<std::uint32_t>(size[d]);
        own = rest % length;
        rest /= length;
      } else {
        own = i % size[d];
        i /= size[d];
      }
#pragma unroll
      for (int n = 0; n < N; ++n) at[n] += own * stride[n][d];
    }
  }
};

}  // namespace heddle::cuda
