// elman on CUDA: a whole scan is one kernel. A block takes one sequence through all of its steps;
// U comes from the cache that all blocks share, the state stays in the block.
#include <cmath>

#include "backend/cuda/products/layer.h"
#include "backend/cuda/products/prepared.h"
#include "backend/cuda/sums.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/elman/elman.call.h"

namespace heddle::cuda {

namespace {

constexpr int kScanThreads = 512;
constexpr int kScanWarps = kScanThreads / 32;
constexpr int kColumns = 128;                    // of a tile of Uᵀ·v
constexpr int kParts = kScanThreads / kColumns;  // of the sum of one column
constexpr std::int64_t kMostShared = 200 << 10;  // bytes of state of one block

// Sequence b and its step number `step`: which token that is.
struct Sequences {
  std::int64_t steps, width;
  bool reverse;
  const std::int64_t* lengths;

  // Never outside of the tensors, whatever the lengths are.
  __device__ std::int64_t length(std::int64_t b) const {
    const std::int64_t n = lengths[b];
    return n < 0 ? 0 : n < steps ? n : steps;
  }
  __device__ std::int64_t place(std::int64_t b, std::int64_t token) const {
    return (b * steps + token) * width;
  }
  __device__ std::int64_t token(std::int64_t step, std::int64_t length) const {
    return reverse ? length - 1 - step : step;
  }
};

// Σ_k row[k]·h[k] by a warp, known to all of its lanes.
template <class S, int kEach>
__device__ Compute<S> dot_of_warp(const S* row, const Compute<S>* h, std::int64_t width) {
  using C = Compute<S>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  C sum = 0;
#pragma unroll 4
  for (std::int64_t k = lane * kEach; k < width; k += 32 * kEach) {
    if constexpr (kEach == 1) {
      sum += static_cast<C>(wide(row[k])) * h[k];
    } else {
      const Values<S> u = load(row + k);
#pragma unroll
      for (int e = 0; e < kEach; ++e) sum += u.v[e] * h[k + e];
    }
  }
  return sum_of_warp(sum);
}

// h_t = tanh(pre_t + U h_{t-1}); states are kept in S.
template <class S, int kEach>
__global__ void __launch_bounds__(kScanThreads)
    scan(const Sequences q, const S* pre, const S* u, const S* h0, S* y, S* last) {
  using C = Compute<S>;
  extern __shared__ __align__(16) unsigned char shared[];
  C* h = reinterpret_cast<C*>(shared);
  C* next = h + q.width;
  const std::int64_t b = blockIdx.x, length = q.length(b);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t i = threadIdx.x; i < q.width; i += kScanThreads)
    h[i] = h0 == nullptr ? C{0} : static_cast<C>(wide(h0[b * q.width + i]));
  for (std::int64_t i = length * q.width + threadIdx.x; i < q.steps * q.width; i += kScanThreads)
    y[q.place(b, 0) + i] = narrow<S>(C{0});
  __syncthreads();
  for (std::int64_t step = 0; step < length; ++step) {
    const std::int64_t at = q.place(b, q.token(step, length));
    for (std::int64_t n = warp; n < q.width; n += kScanWarps) {
      const C dot = dot_of_warp<S, kEach>(u + n * q.width, h, q.width);
      if (lane != 0) continue;
      const S state = narrow<S>(std::tanh(static_cast<C>(wide(pre[at + n])) + dot));
      y[at + n] = state;
      next[n] = wide(state);
    }
    __syncthreads();
    C* const before = h;
    h = next;
    next = before;
  }
  for (std::int64_t i = threadIdx.x; i < q.width; i += kScanThreads)
    last[b * q.width + i] = narrow<S>(h[i]);
}

// dpre_t = (dy_t + v)·(1 - y_t²), v = Uᵀ dpre_{t+1}: dlast before the last step, dh0 at the end.
template <class S>
__global__ void __launch_bounds__(kScanThreads)
    scan_backward(const Sequences q, const S* y, const S* u, const S* dy, const S* dlast, S* dpre,
                  S* dh0) {
  using C = Compute<S>;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ C parts[kParts][kColumns];
  C* const v = reinterpret_cast<C*>(shared);
  C* const d = v + q.width;
  const std::int64_t b = blockIdx.x, length = q.length(b);
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int part = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t rows = ceil_div(q.width, kParts);
  const std::int64_t first = part * rows;
  const std::int64_t end = first + rows < q.width ? first + rows : q.width;
  for (std::int64_t i = threadIdx.x; i < q.width; i += kScanThreads)
    v[i] = dlast == nullptr ? C{0} : static_cast<C>(wide(dlast[b * q.width + i]));
  for (std::int64_t i = length * q.width + threadIdx.x; i < q.steps * q.width; i += kScanThreads)
    dpre[q.place(b, 0) + i] = narrow<S>(C{0});
  __syncthreads();
  for (std::int64_t step = length - 1; step >= 0; --step) {
    const std::int64_t at = q.place(b, q.token(step, length));
    for (std::int64_t i = threadIdx.x; i < q.width; i += kScanThreads) {
      const C state = wide(y[at + i]);
      const C given = dy == nullptr ? C{0} : static_cast<C>(wide(dy[at + i]));
      const S kept = narrow<S>((given + v[i]) * (C{1} - state * state));
      dpre[at + i] = kept;
      d[i] = wide(kept);
    }
    __syncthreads();
    for (std::int64_t tile = 0; tile < q.width; tile += kColumns) {
      const std::int64_t k = tile + column;
      C sum = 0;
      if (k < q.width)
#pragma unroll 8
        for (std::int64_t n = first; n < end; ++n)
          sum += static_cast<C>(wide(u[n * q.width + k])) * d[n];
      parts[part][column] = sum;
      __syncthreads();
      if (part == 0 && k < q.width) {
        for (int i = 1; i < kParts; ++i) sum += parts[i][column];
        v[k] = sum;
      }
      __syncthreads();
    }
  }
  if (dh0 != nullptr)
    for (std::int64_t i = threadIdx.x; i < q.width; i += kScanThreads)
      dh0[b * q.width + i] = narrow<S>(v[i]);
}

Sequences sequences_of(const Tensor& x, const Tensor& order, bool reverse) {
  return {x.size(1), x.size(2), reverse, in<std::int64_t>(order) + x.size(0)};
}

std::size_t state_bytes(const Tensor& x) {
  const std::size_t each = x.dtype() == DType::f64 ? 8 : 4;
  return 2 * each * static_cast<std::size_t>(x.size(2));
}

void check_width(const Tensor& x) {
  if (state_bytes(x) > kMostShared)
    fail(ErrorCode::unsupported, "elman", "the state of a sequence on a GPU",
         "at most " + std::to_string(kMostShared / 2 / (x.dtype() == DType::f64 ? 8 : 4)) +
             " elements",
         std::to_string(x.size(2)));
}

template <class Kernel, class... Args>
void launch_scan(Kernel kernel, const Tensor& x, cudaStream_t stream, Args... args) {
  const std::size_t bytes = state_bytes(x);
  HEDDLE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(bytes)));
  kernel<<<static_cast<unsigned>(x.size(0)), kScanThreads, bytes, stream>>>(args...);
  check_launch("elman");
}

// Blocks need not begin with the longest sequences here: `order` keeps them as they come.
void write_order(ops::ElmanCall& c, cudaStream_t stream) {
  const std::int64_t batch = c.pre.size(0), steps = c.pre.size(1);
  const std::int64_t* const lengths = in<std::int64_t>(c.lengths);
  std::int64_t* const order = out<std::int64_t>(c.order);
  each("elman", stream, batch, [=] __device__(std::int64_t b) {
    order[b] = b;
    order[batch + b] = lengths == nullptr ? steps : lengths[b];
  });
}

void plan_elman(ops::ElmanCall& c) {
  check_width(c.pre);
  c.prepared = prepared_weight(c.recurrent, c.pre.dtype());
}

template <class S>
void elman_as(ops::ElmanCall& c) {
  cudaStream_t const stream = stream_of(c.y.device());
  write_order(c, stream);
  if (c.pre.size(0) == 0) return;
  const Sequences q = sequences_of(c.pre, c.order, c.reverse);
  const S* const u = in<S>(c.prepared);
  const bool whole = aligned(u) && q.width % kVector<S> == 0;
  const auto kernel = whole ? scan<S, kVector<S>> : scan<S, 1>;
  launch_scan(kernel, c.pre, stream, q, in<S>(c.pre), u, in<S>(c.h0), out<S>(c.y), out<S>(c.last));
}

void plan_elman_backward(ops::ElmanBackwardCall& c) {
  c.prepared = prepared_weight(c.recurrent, c.y.dtype());
}

template <class S>
void elman_backward_as(ops::ElmanBackwardCall& c) {
  if (c.y.size(0) == 0) return;
  launch_scan(scan_backward<S>, c.y, stream_of(c.dpre.device()),
              sequences_of(c.y, c.order, c.reverse), in<S>(c.y), in<S>(c.prepared), in<S>(c.dy),
              in<S>(c.dlast), out<S>(c.dpre), out<S>(c.dh0));
}

DType sums_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void plan_recurrent_gradient(ops::ElmanRecurrentGradientCall& c) {
  const std::int64_t rows = c.y.size(0) * c.y.size(1), width = c.y.size(2);
  c.before = workspace({rows, width}, c.y.dtype(), c.y);
  const std::size_t bytes = layer_room({c.y.dtype(), sums_dtype(c.y), width, width, false});
  if (bytes > 0) c.prepared = workspace({static_cast<std::int64_t>(bytes)}, DType::u8, c.y);
}

// The state before each token's step; of padding, whose dpre is 0, any number will do.
template <class S>
void make_states_before(ops::ElmanRecurrentGradientCall& c, cudaStream_t stream) {
  const Sequences q = sequences_of(c.y, c.order, c.reverse);
  const S* const y = in<S>(c.y);
  const S* const h0 = in<S>(c.h0);
  S* const before = out<S>(c.before);
  each("elman, gradient of recurrent", stream, c.y.elements(), [=] __device__(std::int64_t i) {
    const std::int64_t row = i / q.width, column = i - row * q.width;
    const std::int64_t b = row / q.steps, token = row - b * q.steps;
    const std::int64_t length = q.length(b);
    const std::int64_t from = q.reverse ? token + 1 : token - 1;
    if (token < length && from >= 0 && from < length)
      before[i] = y[q.place(b, from) + column];
    else
      before[i] =
          token < length && h0 != nullptr ? h0[b * q.width + column] : narrow<S>(Compute<S>{0});
  });
}

void run_recurrent_gradient(ops::ElmanRecurrentGradientCall& c) {
  cudaStream_t const stream = stream_of(c.du.device());
  for_storage(c.y.dtype(), [&](auto s) { make_states_before<decltype(s)>(c, stream); });
  Product p;
  p.dtype = c.y.dtype();
  p.y_dtype = c.du.dtype();
  p.m = p.n = c.y.size(2);
  p.k = c.y.size(0) * c.y.size(1);
  p.a = {in<void>(c.dpre), 1, p.m, {}};  // [H, rows]
  p.b = {in<void>(c.before), p.n, 1, {}};
  p.y = out<void>(c.du);
  const Room room{out<void>(c.prepared), c.prepared.defined() ? c.prepared.bytes() : 0};
  multiply_layer(p, {}, room, c.y.device().index, stream);
}

void run_elman(ops::ElmanCall& c) {
  for_storage(c.pre.dtype(), [&](auto s) { elman_as<decltype(s)>(c); });
}

void run_elman_backward(ops::ElmanBackwardCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { elman_backward_as<decltype(s)>(c); });
}

}  // namespace

void add_elman_routines() {
  add<ops::ElmanCall>({run_elman, plan_elman});
  add<ops::ElmanBackwardCall>({run_elman_backward, plan_elman_backward});
  add<ops::ElmanRecurrentGradientCall>({run_recurrent_gradient, plan_recurrent_gradient});
}

}  // namespace heddle::cuda
