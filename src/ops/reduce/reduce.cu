// reduce on CUDA. The length is cut into pieces by shape; each piece is summed in one order, and
// the pieces' sums after each other.
#include <cmath>

#include "backend/cuda/kernel.cuh"
#include "base/divide.h"
#include "ops/reduce/reduce.call.h"

namespace heddle::cuda {

namespace {

using ops::Reduce;

constexpr std::int64_t kPiece = 4096;  // along the length, where it is dense
constexpr std::int64_t kColumn = 128;  // ... and where its elements are `inner` apart
constexpr unsigned kAllLanes = 0xffffffffu;

template <class C>
__device__ C least(Reduce kind) {
  return kind == Reduce::sum ? C{0} : -static_cast<C>(INFINITY);
}

template <class C>
__device__ C joined(Reduce kind, C a, C b) {
  if (kind == Reduce::sum) return a + b;
  return a != a || a > b ? a : b;  // a NaN stays
}

std::int64_t pieces_of(const ops::ReduceSplit& s) {
  return std::max<std::int64_t>(ceil_div(s.length, s.inner == 1 ? kPiece : kColumn), 1);
}

// Row by row: a block of threads joins `piece` neighbours of one row.
template <class From, class To, class C>
__global__ void __launch_bounds__(kThreads)
    reduce_rows(Reduce kind, std::int64_t outer, std::int64_t length, std::int64_t pieces,
                std::int64_t piece, C scale, const From* x, To* y) {
  __shared__ C parts[kThreads / 32];
  for (std::int64_t job = blockIdx.x; job < outer * pieces; job += gridDim.x) {
    const std::int64_t begin = job % pieces * piece;
    const std::int64_t end = begin + piece < length ? begin + piece : length;
    const From* const row = x + job / pieces * length;
    C own = least<C>(kind);
    for (std::int64_t l = begin + threadIdx.x; l < end; l += kThreads)
      own = joined(kind, own, static_cast<C>(wide(row[l])));
    for (int lane = 16; lane > 0; lane /= 2)
      own = joined(kind, own, __shfl_down_sync(kAllLanes, own, static_cast<unsigned>(lane)));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
      C all = parts[0];
      for (int i = 1; i < kThreads / 32; ++i) all = joined(kind, all, parts[i]);
      y[job] = narrow<To>(scale * all);
    }
    __syncthreads();
  }
}

// Column by column: a thread joins `piece` elements that are `inner` apart. x as
// [outer, length, inner], y as [outer, pieces, inner].
template <class From, class To, class C>
void reduce_columns(cudaStream_t stream, Reduce kind, const ops::ReduceSplit& s,
                    std::int64_t pieces, std::int64_t piece, C scale, const From* x, To* y) {
  const std::int64_t length = s.length, inner = s.inner;
  each("reduce", stream, s.outer * pieces * inner, [=] __device__(std::int64_t i) {
    const std::int64_t job = i / inner;
    const std::int64_t begin = job % pieces * piece;
    const std::int64_t end = begin + piece < length ? begin + piece : length;
    const From* const column = x + job / pieces * length * inner + i % inner;
    C own = least<C>(kind);
    for (std::int64_t l = begin; l < end; ++l)
      own = joined(kind, own, static_cast<C>(wide(column[l * inner])));
    y[i] = narrow<To>(scale * own);
  });
}

// One pass: `pieces` of `piece` elements each.
template <class From, class To, class C>
void reduce_pass(cudaStream_t stream, Reduce kind, const ops::ReduceSplit& s, std::int64_t pieces,
                 std::int64_t piece, C scale, const From* x, To* y) {
  if (s.outer * s.inner == 0) return;
  if (s.inner > 1) return reduce_columns(stream, kind, s, pieces, piece, scale, x, y);
  reduce_rows<<<grid_for(s.outer * pieces), kThreads, 0, stream>>>(kind, s.outer, s.length, pieces,
                                                                   piece, scale, x, y);
  check_launch("reduce");
}

void plan_reduce(ops::ReduceCall& c) {
  const std::int64_t pieces = pieces_of(c.split);
  if (pieces > 1)
    c.partial = workspace({c.split.outer, pieces, c.split.inner},
                          c.x.dtype() == DType::f64 ? DType::f64 : DType::f32, c.x);
}

template <class S>
void reduce_as(ops::ReduceCall& c) {
  using C = Compute<S>;
  const ops::ReduceSplit& s = c.split;
  cudaStream_t const stream = stream_of(c.y.device());
  const C scale = static_cast<C>(c.scale);
  const std::int64_t pieces = pieces_of(s);
  if (pieces == 1)
    return reduce_pass(stream, c.kind, s, 1, s.length, scale, in<S>(c.x), out<S>(c.y));
  C* const partial = out<C>(c.partial);
  reduce_pass(stream, c.kind, s, pieces, s.inner == 1 ? kPiece : kColumn, C{1}, in<S>(c.x),
              partial);
  const C* const parts = partial;
  reduce_pass(stream, c.kind, {s.outer, pieces, s.inner}, 1, pieces, scale, parts, out<S>(c.y));
}

template <class S>
void max_backward_as(ops::MaxBackwardCall& c) {
  using C = Compute<S>;
  const auto [outer, length, inner] = c.split;
  const std::int64_t lines = length, step = inner;  // plain variables, for the lambda
  const S* const x = in<S>(c.x);
  const S* const y = in<S>(c.y);
  const S* const dy = in<S>(c.dy);
  S* const dx = out<S>(c.dx);
  each("max, backward", stream_of(c.dx.device()), outer * inner, [=] __device__(std::int64_t i) {
    const std::int64_t first = i / step * lines * step + i % step;
    const C most = wide(y[i]);
    std::int64_t equal = 0;
    for (std::int64_t l = 0; l < lines; ++l) equal += wide(x[first + l * step]) == most ? 1 : 0;
    const C share = wide(dy[i]) / static_cast<C>(equal);
    for (std::int64_t l = 0; l < lines; ++l) {
      const std::int64_t at = first + l * step;
      dx[at] = narrow<S>(wide(x[at]) == most ? share : C{0});
    }
  });
}

void run_reduce(ops::ReduceCall& c) {
  for_storage(c.x.dtype(), [&](auto s) { reduce_as<decltype(s)>(c); });
}

void run_max_backward(ops::MaxBackwardCall& c) {
  for_storage(c.x.dtype(), [&](auto s) { max_backward_as<decltype(s)>(c); });
}

}  // namespace

void add_reduce_routines() {
  add<ops::ReduceCall>({run_reduce, plan_reduce});
  add<ops::MaxBackwardCall>({run_max_backward});
}

}  // namespace heddle::cuda
