// The strided copy on CUDA.
#include "backend/copy.call.h"
#include "backend/cuda/strided.cuh"
#include "backend/cuda/vectors.cuh"

namespace heddle::cuda {

namespace {

// Truncated; the nearest limit where To cannot hold it, 0 for NaN: as on the CPU.
template <class To, class From>
__device__ To saturated(From v) {
  constexpr To kLow = std::is_signed_v<To> ? static_cast<To>(To{1} << (8 * sizeof(To) - 1)) : To{0};
  constexpr To kHigh = static_cast<To>(~kLow);
  if (v != v) return To{0};
  if (v <= static_cast<From>(kLow)) return kLow;
  if (v >= static_cast<From>(kHigh)) return kHigh;
  return static_cast<To>(v);
}

template <class To, class From>
__device__ To converted(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
    return saturated<To>(static_cast<std::int64_t>(v));
  else if constexpr (std::is_integral_v<To>)
    return saturated<To>(static_cast<double>(wide(v)));
  else if constexpr (std::is_integral_v<From>)
    return std::is_same_v<To, double> ? narrow<To>(static_cast<double>(v))
                                      : narrow<To>(static_cast<float>(v));
  else
    return narrow<To>(wide(v));
}

template <class To, class From>
void copy_as(backend::CopyCall& c) {
  const Walk<2> walk(c.dst.shape(), {&c.src.strides(), &c.dst.strides()});
  const From* const src = in<From>(c.src);
  To* const dst = out<To>(c.dst);
  cudaStream_t const stream = stream_of(c.dst.device());
  if (walk.plain() && std::is_same_v<To, From>) {
    if (walk.count > 0)
      HEDDLE_CUDA_CHECK(cudaMemcpyAsync(dst, src, static_cast<std::size_t>(walk.count) * sizeof(To),
                                        cudaMemcpyDeviceToDevice, stream));
    return;
  }
  each("copy", stream, walk.count, [=] __device__(std::int64_t i) {
    std::int64_t at[2];
    walk.offsets(i, at);
    dst[at[1]] = converted<To>(src[at[0]]);
  });
}

template <class C>
struct Added {
  __device__ C operator()(C a, C b) const { return a + b; }
};

template <class S>
void add_as(backend::CopyCall& c) {
  const Walk<2> walk(c.dst.shape(), {&c.src.strides(), &c.dst.strides()});
  const S* const src = in<S>(c.src);
  S* const dst = out<S>(c.dst);
  cudaStream_t const stream = stream_of(c.dst.device());
  if constexpr (!std::is_same_v<S, f16>)
    if (walk.plain()) return map("copy", stream, walk.count, Added<Compute<S>>(), dst, dst, src);
  each("copy", stream, walk.count, [=] __device__(std::int64_t i) {
    std::int64_t at[2];
    walk.offsets(i, at);
    dst[at[1]] = narrow<S>(wide(dst[at[1]]) + wide(src[at[0]]));
  });
}

template <class F>
void for_any(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f16: return f(f16{});
    case DType::f64: return f(double{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
  }
}

// Types that stay are only as wide as they are.
void copy_same(backend::CopyCall& c) {
  switch (size_of(c.dst.dtype())) {
    case 1: return copy_as<std::uint8_t, std::uint8_t>(c);
    case 2: return copy_as<std::uint16_t, std::uint16_t>(c);
    case 4: return copy_as<std::uint32_t, std::uint32_t>(c);
    default: return copy_as<std::uint64_t, std::uint64_t>(c);
  }
}

void run_copy(backend::CopyCall& c) {
  if (c.accumulate)
    return for_any(c.dst.dtype(), [&](auto s) {
      if constexpr (!std::is_integral_v<decltype(s)>) add_as<decltype(s)>(c);
    });
  if (c.src.dtype() == c.dst.dtype()) return copy_same(c);
  for_any(c.src.dtype(), [&](auto from) {
    for_any(c.dst.dtype(), [&](auto to) {
      if constexpr (!std::is_same_v<decltype(to), decltype(from)>)
        copy_as<decltype(to), decltype(from)>(c);
    });
  });
}

}  // namespace

void add_copy_routines() { add<backend::CopyCall>({run_copy}); }

}  // namespace heddle::cuda
