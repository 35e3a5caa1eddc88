// Arrays 16 bytes at a time: the width needed to read and write memory at full speed.
#pragma once

#include "backend/cuda/kernel.cuh"
#include "base/divide.h"

namespace heddle::cuda {

// Elements of type S in 16 bytes.
template <class S>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(S));

inline bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

// Whether every row of a matrix with rows `stride` elements apart begins at a multiple of 16 bytes;
// a null pointer counts as aligned.
template <class S>
bool rows_aligned(const S* p, std::int64_t stride) {
  return aligned(p) && stride % kVector<S> == 0;
}

// As many numbers as one vector of S holds, in the type they are computed in.
template <class S>
struct Values {
  Compute<S> v[kVector<S>];
};

template <class S>
__device__ inline Values<S> widened(const uint4& raw) {
  Values<S> to;
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  if constexpr (std::is_same_v<S, bf16>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to.v[2 * i] = __uint_as_float(words[i] << 16);
      to.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  } else if constexpr (std::is_same_v<S, double>) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      to.v[i] =
          __hiloint2double(static_cast<int>(words[2 * i + 1]), static_cast<int>(words[2 * i]));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to.v[i] = __uint_as_float(words[i]);
  }
  return to;
}

template <class S>
__device__ inline uint4 narrowed(const Values<S>& from) {
  std::uint32_t words[4];
  if constexpr (std::is_same_v<S, bf16>) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
          : "=r"(words[i])
          : "f"(from.v[2 * i + 1]), "f"(from.v[2 * i]));
  } else if constexpr (std::is_same_v<S, double>) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      words[2 * i] = static_cast<std::uint32_t>(__double2loint(from.v[i]));
      words[2 * i + 1] = static_cast<std::uint32_t>(__double2hiint(from.v[i]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __float_as_uint(from.v[i]);
  }
  return {words[0], words[1], words[2], words[3]};
}

// p is a multiple of 16 bytes.
template <class S>
__device__ inline uint4 load_raw(const S* p) {
  return *reinterpret_cast<const uint4*>(p);
}
template <class S>
__device__ inline Values<S> load(const S* p) {
  return widened<S>(load_raw(p));
}
template <class S>
__device__ inline void store(S* p, const Values<S>& v) {
  *reinterpret_cast<uint4*>(p) = narrowed<S>(v);
}

// Parameters for a vector of S: as many, in the type that S is computed in.
template <class S>
__device__ inline Values<S> load_parameters(const Compute<S>* p) {
  Values<S> to;
  constexpr int kEach = kVector<Compute<S>>;
#pragma unroll
  for (int i = 0; i < kVector<S>; i += kEach) {
    const Values<Compute<S>> part = load(p + i);
#pragma unroll
    for (int j = 0; j < kEach; ++j) to.v[i + j] = part.v[j];
  }
  return to;
}

template <class S, class F, class... V>
__device__ Values<S> mapped(F f, const V&... x) {
  Values<S> y;
#pragma unroll
  for (int i = 0; i < kVector<S>; ++i) y.v[i] = f(x.v[i]...);
  return y;
}

template <class S, class F, class... X>
__global__ void __launch_bounds__(kThreads)
    map_kernel(std::int64_t vectors, std::int64_t count, F f, S* y, const X*... x) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t jobs = vectors + count - vectors * kVector<S>;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < jobs; i += step) {
    if (i < vectors) {
      const std::int64_t at = i * kVector<S>;
      store(y + at, mapped<S>(f, load(x + at)...));
    } else {
      const std::int64_t at = vectors * kVector<S> + i - vectors;
      y[at] = narrow<S>(f(wide(x[at])...));
    }
  }
}

// y[i] = f(x[i]...) for dense arrays of one type; y may be one of them.
template <class S, class F, class... X>
void map(const char* name, cudaStream_t stream, std::int64_t count, F f, S* y, const X*... x) {
  static_assert((std::is_same_v<S, X> && ...));
  if (count == 0) return;
  const bool whole = aligned(y) && (aligned(x) && ...);
  const std::int64_t vectors = whole ? count / kVector<S> : 0;
  const std::int64_t jobs = vectors + count - vectors * kVector<S>;
  map_kernel<<<grid_for(ceil_div(jobs, kThreads)), kThreads, 0, stream>>>(vectors, count, f, y,
                                                                          x...);
  check_launch(name);
}

}  // namespace heddle::cuda
