// Shared by every .cu: elements in the type they are computed in, launches, and conversion of
// tensors to pointers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/engine.h"
#include "backend/cuda/error.h"
#include "backend/routine.h"
#include "base/divide.h"
#include "heddle/dtype.h"
#include "heddle/error.h"
#include "tensor/storage.h"

namespace heddle::cuda {

// The type in which elements of type S are computed.
template <class S>
using Compute = std::conditional_t<std::is_same_v<S, double>, double, float>;

__device__ inline float wide(float v) { return v; }
__device__ inline double wide(double v) { return v; }
__device__ inline float wide(bf16 v) { return __uint_as_float(std::uint32_t{v.bits} << 16); }
__device__ inline float wide(f16 v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}

// To the nearest number of type S, to the even one of two.
template <class S>
__device__ inline S narrow(float v) {
  if constexpr (std::is_same_v<S, bf16>) {
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
    return r;
  } else if constexpr (std::is_same_v<S, f16>) {
    f16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
    return r;
  } else {
    return static_cast<S>(v);
  }
}
template <class S>
__device__ inline S narrow(double v) {
  if constexpr (std::is_same_v<S, double>)
    return v;
  else
    return narrow<S>(static_cast<float>(v));
}

// Calls f with an object of the storage type: of the three that ops compute in.
template <class F>
void for_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f64: return f(double{});
    default: break;
  }
  fail(ErrorCode::dtype_mismatch, "CUDA", "no kernel computes in this type", "f32, bf16 or f64",
       to_string(dtype));
}

// ... and of the two that indices have.
template <class F>
void for_index(DType dtype, F f) {
  if (dtype == DType::i64) return f(std::int64_t{});
  return f(std::int32_t{});
}

inline constexpr int kThreads = 256;
inline constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;

inline unsigned grid_for(std::int64_t blocks) {
  return static_cast<unsigned>(std::min(blocks, kMostBlocks));
}

template <class F>
__global__ void __launch_bounds__(kThreads) each_kernel(std::int64_t count, F f) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step)
    f(i);
}

// f(i) on the device, for every i below count.
template <class F>
void each(const char* name, cudaStream_t stream, std::int64_t count, F f) {
  if (count == 0) return;
  each_kernel<<<grid_for(ceil_div(count, kThreads)), kThreads, 0, stream>>>(count, f);
  check_launch(name);
}

template <class T>
const T* in(const Tensor& x) {
  return x.defined() ? reinterpret_cast<const T*>(device_address(x)) : nullptr;
}

// A tensor that is written counts as changed, as on the CPU.
template <class T>
T* out(Tensor& y) {
  if (!y.defined()) return nullptr;
  y.bump_version();
  return reinterpret_cast<T*>(device_address(y));
}

inline Tensor workspace(const Shape& shape, DType dtype, const Tensor& like) {
  const PurposeScope scope(Purpose::workspace);
  return Tensor::empty(shape, dtype, like.device());
}

template <class Call>
void add(const backend::Routine<Call>& routine) {
  backend::add_routine<Call>(DeviceKind::cuda, routine);
}

}  // namespace heddle::cuda
