// top_k on CUDA: the largest number that comes after the one found before, again and again. By
// size, then by place, so that equal numbers come in their order; a NaN counts as -inf.
#include <cmath>

#include "backend/cuda/sums.cuh"
#include "base/divide.h"
#include "ops/gather/gather.call.h"
#include "ops/support/check.h"

namespace heddle::cuda {

namespace {

constexpr std::int64_t kLongRow = 1024;  // shared by a whole block

template <class T>
struct Found {
  T value;
  long long place;  // -1: none

  // Whether it stands before the other one.
  __device__ bool before(const Found& other) const {
    if (place < 0 || other.place < 0) return other.place < 0 && place >= 0;
    return value > other.value || (value == other.value && place < other.place);
  }
};

// The first of all kLanes threads that share a row, known to each of them.
template <int kLanes, class T>
__device__ Found<T> first_of_row(Found<T> own) {
  __shared__ Found<T> parts[kThreads / 32];
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    const Found<T> other{__shfl_xor_sync(kWarp, own.value, lane),
                         __shfl_xor_sync(kWarp, own.place, lane)};
    if (other.before(own)) own = other;
  }
  if constexpr (kLanes > 32) {
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    for (int i = 0; i < kLanes / 32; ++i)
      if (parts[i].before(own)) own = parts[i];
  }
  return own;
}

template <class T, int kLanes>
__global__ void __launch_bounds__(kThreads)
    largest(std::int64_t rows, std::int64_t n, std::int64_t count, const T* x,
            std::int64_t* places) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kRows = kThreads / kLanes;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes; row < rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const T* const from = x + row * n;
    Found<T> last{0, -1};
    for (std::int64_t k = 0; k < count; ++k) {
      Found<T> best{0, -1};
      for (std::int64_t i = lane; i < n; i += kLanes) {
        const T v = from[i];
        const Found<T> here{v != v ? -static_cast<T>(INFINITY) : v, i};
        if ((last.place < 0 || last.before(here)) && here.before(best)) best = here;
      }
      last = first_of_row<kLanes>(best);
      if (lane == 0) places[row * count + k] = last.place;
    }
  }
}

template <class T>
void top_k_as(ops::TopKCall& c) {
  const std::int64_t rows = ops::rows_of(c.x), n = c.x.size(-1), count = c.places.size(-1);
  if (rows * count == 0) return;
  cudaStream_t const stream = stream_of(c.places.device());
  std::int64_t* const places = out<std::int64_t>(c.places);
  if (n > kLongRow)
    largest<T, kThreads>
        <<<grid_for(rows), kThreads, 0, stream>>>(rows, n, count, in<T>(c.x), places);
  else
    largest<T, 32><<<grid_for(ceil_div(rows, kThreads / 32)), kThreads, 0, stream>>>(
        rows, n, count, in<T>(c.x), places);
  check_launch("top_k");
}

void run_top_k(ops::TopKCall& c) {
  if (c.x.dtype() == DType::f64)
    top_k_as<double>(c);
  else
    top_k_as<float>(c);
}

}  // namespace

void add_top_k_routines() { add<ops::TopKCall>({run_top_k}); }

}  // namespace heddle::cuda
