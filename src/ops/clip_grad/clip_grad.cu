// clip_grad on CUDA: sums of squares in float64 over blocks of fixed size, the blocks' sums in one
// order; nothing is read back.
#include <cmath>

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/clip_grad/clip_grad.call.h"

namespace heddle::cuda {

namespace {

constexpr std::int64_t kNormBlock = 16384;  // elements of one partial sum
constexpr int kNormArrays = 120;            // in the 4 KB of a kernel's arguments
constexpr int kSumThreads = 1024;
constexpr int kLosses = 64;

struct NormArray {
  const void* x;
  std::int64_t count;
  std::int64_t first_block;
  DType dtype;
};

struct NormTable {
  int arrays = 0;
  NormArray all[kNormArrays];
};

template <class S>
__device__ double sum_of_squares(const S* x, std::int64_t n) {
  double sum = 0;
  const bool whole = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  const std::int64_t vectors = whole ? n / kVector<S> : 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const Values<S> v = load(x + i * kVector<S>);
#pragma unroll
    for (int e = 0; e < kVector<S>; ++e)
      sum += static_cast<double>(v.v[e]) * static_cast<double>(v.v[e]);
  }
  for (std::int64_t i = vectors * kVector<S> + threadIdx.x; i < n; i += kThreads)
    sum += static_cast<double>(wide(x[i])) * static_cast<double>(wide(x[i]));
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    norm_blocks(const __grid_constant__ NormTable table, double* partial) {
  int low = 0, high = table.arrays;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.all[middle].first_block <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  const NormArray& a = table.all[low];
  const std::int64_t begin = (blockIdx.x - a.first_block) * kNormBlock;
  const std::int64_t n = a.count - begin < kNormBlock ? a.count - begin : kNormBlock;
  double own = 0;
  if (a.dtype == DType::f64)
    own = sum_of_squares(static_cast<const double*>(a.x) + begin, n);
  else if (a.dtype == DType::bf16)
    own = sum_of_squares(static_cast<const bf16*>(a.x) + begin, n);
  else
    own = sum_of_squares(static_cast<const float*>(a.x) + begin, n);
  own = sum_of_row<kThreads>(own);
  if (threadIdx.x == 0) partial[blockIdx.x] = own;
}

__global__ void __launch_bounds__(kSumThreads)
    root_of_sum(const double* partial, std::int64_t count, double* norm) {
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kSumThreads) own += partial[i];
  own = sum_of_row<kSumThreads>(own);
  if (threadIdx.x == 0) *norm = std::sqrt(own);
}

void plan_global_norm(ops::GlobalNormCall& c) {
  std::int64_t blocks = 0;
  for (const Tensor& x : c.grads) blocks += ceil_div(x.elements(), kNormBlock);
  c.partial = workspace({blocks}, DType::f64, c.norm);
}

void run_global_norm(ops::GlobalNormCall& c) {
  cudaStream_t const stream = stream_of(c.norm.device());
  double* const partial = out<double>(c.partial);
  NormTable table;
  std::int64_t blocks = 0, done = 0;  // of this launch, and of those before it
  const auto run = [&] {
    if (blocks == 0) return;
    norm_blocks<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(table, partial + done);
    check_launch("global_norm");
    done += blocks;
    blocks = 0;
    table.arrays = 0;
  };
  for (const Tensor& x : c.grads) {
    if (x.elements() == 0) continue;
    if (table.arrays == kNormArrays) run();
    table.all[table.arrays++] = {in<void>(x), x.elements(), blocks, x.dtype()};
    blocks += ceil_div(x.elements(), kNormBlock);
  }
  run();
  root_of_sum<<<1, kSumThreads, 0, stream>>>(partial, done, out<double>(c.norm));
  check_launch("global_norm");
}

struct Losses {
  int count = 0;
  const void* number[kLosses];
  DType dtype[kLosses];
};

__device__ double number_at(const void* p, DType dtype) {
  if (dtype == DType::f64) return *static_cast<const double*>(p);
  if (dtype == DType::bf16) return wide(*static_cast<const bf16*>(p));
  return *static_cast<const float*>(p);
}

// One thread. The first launch of several makes the scale, the others only look at their losses.
__global__ void make_scale(bool first, const void* norm, DType norm_dtype, double max_norm,
                           const __grid_constant__ Losses losses, double* scale) {
  if (first) {
    const double length = number_at(norm, norm_dtype);
    const double limited = max_norm / (length + 1e-6);
    // No norm is below 0: that is as wrong as one that is not finite.
    *scale = isfinite(length) && length >= 0 ? (limited > 1 ? 1 : limited) : NAN;
  }
  for (int i = 0; i < losses.count; ++i)
    if (!isfinite(number_at(losses.number[i], losses.dtype[i]))) *scale = NAN;
}

void run_clip_scale(ops::ClipScaleCall& c) {
  cudaStream_t const stream = stream_of(c.scale.device());
  double* const scale = out<double>(c.scale);
  std::size_t begin = 0;
  do {
    Losses losses;
    for (std::size_t i = begin; i < c.losses.size() && losses.count < kLosses; ++i) {
      losses.number[losses.count] = in<void>(c.losses[i]);
      losses.dtype[losses.count++] = c.losses[i].dtype();
    }
    make_scale<<<1, 1, 0, stream>>>(begin == 0, in<void>(c.norm), c.norm.dtype(), c.max_norm,
                                    losses, scale);
    check_launch("clip_scale");
    begin += static_cast<std::size_t>(kLosses);
  } while (begin < c.losses.size());
}

template <class S>
void scale_into_as(ops::ScaleIntoCall& c) {
  using C = Compute<S>;
  const C factor = static_cast<C>(c.factor);
  S* const x = out<S>(c.x);
  map(
      "scale_into", stream_of(c.x.device()), c.x.elements(),
      [=] __device__(C v) { return v * factor; }, x, x);
}

void run_scale_into(ops::ScaleIntoCall& c) {
  for_storage(c.x.dtype(), [&](auto s) { scale_into_as<decltype(s)>(c); });
}

}  // namespace

void add_clip_grad_routines() {
  add<ops::GlobalNormCall>({run_global_norm, plan_global_norm});
  add<ops::ClipScaleCall>({run_clip_scale});
  add<ops::ScaleIntoCall>({run_scale_into});
}

}  // namespace heddle::cuda
