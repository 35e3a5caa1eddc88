#include "backend/cuda/products/columns.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>

#include "backend/cuda/activation.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"

namespace heddle::cuda {

namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kTall = 32;  // threads down a column of partial sums

// A part is this many rows at least, and there are at most kBlocks blocks in all: five rounds of
// three on each of an H200's multiprocessors, of which the last one is full too.
constexpr std::int64_t kLeastRows = 64, kBlocks = 5 * 3 * 132;
// Rows that a warp loads before it computes with the first of them: what memory is kept busy by.
constexpr int kAhead = 4;

template <class S>
struct ColumnArgs {
  std::int64_t rows, columns, stride, rows_of_part;
  const S* x;
  const S* before;
  bool of_relu;
  Activation activation;
  const Compute<S>* bias;
  S* product;
  Compute<S>* partial;
};

// Arguments of a launch, one for each matrix: blocks say which.
template <class Args>
struct Together {
  Args of[kColumnSumsTogether];
};

// kEach neighbouring columns of a row, as they lie in memory. Rows that are loaded ahead stay so:
// widened, they would take twice the registers.
template <class S, int kEach>
using RawLine = std::conditional_t<kEach == 1, S, uint4>;

template <class S, int kEach>
__device__ RawLine<S, kEach> raw_line(const S* p) {
  return *reinterpret_cast<const RawLine<S, kEach>*>(p);
}

// ... and in the type they are computed in.
template <class S, int kEach>
struct Line {
  Compute<S> v[kEach];

  __device__ void take(const RawLine<S, kEach>& raw) {
    if constexpr (kEach == 1) {
      v[0] = wide(raw);
    } else {
      const Values<S> from = widened<S>(raw);
#pragma unroll
      for (int e = 0; e < kEach; ++e) v[e] = from.v[e];
    }
  }
  __device__ void store(S* p) const {
    if constexpr (kEach == 1) {
      *p = narrow<S>(v[0]);
    } else {
      Values<S> to;
#pragma unroll
      for (int e = 0; e < kEach; ++e) to.v[e] = v[e];
      cuda::store(p, to);
    }
  }
};

// Factors of the columns.
struct NoSlope {};
struct ReluSlope {};  // 1 where the output was above 0

template <class Slope, class S, int kEach>
__device__ void apply_slope(Slope slope, Line<S, kEach>& x, const Line<S, kEach>& before,
                            const Line<S, kEach>& bias) {
  using C = Compute<S>;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if constexpr (std::is_same_v<Slope, ReluSlope>)
      x.v[e] *= before.v[e] > C{0} ? C{1} : C{0};
    else
      x.v[e] *= activated<C, S>(slope, before.v[e] + bias.v[e]).slope;
  }
}

// Calls f with it.
template <class S, class F>
__device__ void for_slope(const ColumnArgs<S>& a, F f) {
  if (a.before == nullptr) return f(NoSlope());
  if (a.of_relu) return f(ReluSlope());
  for_activation(a.activation, f);
}

// The rows [first, last) of a part, of which a warp takes every eighth.
template <class Slope, class S, int kEach>
__device__ void sum_rows(const ColumnArgs<S>& a, std::int64_t first, std::int64_t last, int warp,
                         std::int64_t column, Slope slope, Compute<S> (&sums)[kEach]) {
  constexpr bool kSlope = !std::is_same_v<Slope, NoSlope>;
  [[maybe_unused]] Line<S, kEach> bias{};
  if (kSlope && a.bias != nullptr)
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (column + e < a.columns) bias.v[e] = a.bias[column + e];
  for (std::int64_t row = first + warp; row < last && column < a.columns; row += kAhead * kWarps) {
    RawLine<S, kEach> raw[kAhead];
    [[maybe_unused]] RawLine<S, kEach> raw_before[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const std::int64_t r = row + i * kWarps;
      if (r >= last) continue;
      raw[i] = raw_line<S, kEach>(a.x + r * a.stride + column);
      if constexpr (kSlope) raw_before[i] = raw_line<S, kEach>(a.before + r * a.columns + column);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const std::int64_t r = row + i * kWarps;
      if (r >= last) continue;
      Line<S, kEach> x;
      x.take(raw[i]);
      if constexpr (kSlope) {
        Line<S, kEach> before;
        before.take(raw_before[i]);
        apply_slope(slope, x, before, bias);
        x.store(a.product + r * a.columns + column);
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) sums[e] += x.v[e];
    }
  }
}

// A block sums 32·kEach columns over the rows of one part: warp w takes the rows w, w + 8, ..., and
// the warps' sums are added in their order. A column's order does not depend on kEach.
template <class S, int kEach>
__global__ void __launch_bounds__(kThreads, 3)
    sum_part(const __grid_constant__ Together<ColumnArgs<S>> all) {
  using C = Compute<S>;
  const ColumnArgs<S>& a = all.of[blockIdx.z];
  __shared__ C total[32 * kEach];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = (std::int64_t{blockIdx.x} * 32 + lane) * kEach;
  const std::int64_t first = blockIdx.y * a.rows_of_part;
  const std::int64_t last = first + a.rows_of_part < a.rows ? first + a.rows_of_part : a.rows;
  C sums[kEach] = {};
  for_slope(a, [&](auto slope) { sum_rows(a, first, last, warp, column, slope, sums); });
  if (a.partial == nullptr) return;
  for (int w = 0; w < kWarps; ++w) {
    if (warp == w)
#pragma unroll
      for (int e = 0; e < kEach; ++e)
        total[lane * kEach + e] = w == 0 ? sums[e] : total[lane * kEach + e] + sums[e];
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < 32 * kEach; i += kThreads) {
    const std::int64_t at = std::int64_t{blockIdx.x} * 32 * kEach + i;
    if (at < a.columns) a.partial[blockIdx.y * a.columns + at] = total[i];
  }
}

template <class C>
__global__ void __launch_bounds__(32 * kTall)
    sum_of_parts(const __grid_constant__ Together<PartSums> all, const PartShape shape) {
  const C* const partial = static_cast<const C*>(all.of[blockIdx.y].partial);
  C* const sums = static_cast<C*>(all.of[blockIdx.y].sums);
  const std::int64_t parts = shape.parts, columns = shape.columns;
  __shared__ C total[kTall][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + lane;
  C own = 0;
  if (column < columns)
#pragma unroll 4
    for (std::int64_t p = row; p < parts; p += kTall) own += partial[p * columns + column];
  total[row][lane] = own;
  __syncthreads();
  if (row > 0 || column >= columns) return;
  const int rows = parts < kTall ? static_cast<int>(parts) : kTall;
  for (int i = 1; i < rows; ++i) own += total[i][lane];
  sums[column] = shape.accumulate ? sums[column] + own : own;
}

// Vectors want every row to begin at a multiple of 16 bytes; the last vector of a row may reach
// into the gap before the next row, where there is one.
template <class S>
bool in_vectors(const ColumnSums& s) {
  const auto whole = round_up(s.columns, kVector<S>);
  const bool x = rows_aligned(static_cast<const S*>(s.x), s.stride) && s.stride >= whole;
  if (s.before == nullptr) return x;
  return x && s.columns == whole && aligned(s.before) && aligned(s.product);
}

template <class S>
ColumnArgs<S> args_of(const ColumnSums& s, std::int64_t parts) {
  using C = Compute<S>;
  ColumnArgs<S> a;
  a.rows = s.rows;
  a.columns = s.columns;
  a.stride = s.stride;
  a.rows_of_part = ceil_div(s.rows, parts);
  a.x = static_cast<const S*>(s.x);
  a.before = static_cast<const S*>(s.before);
  a.of_relu = s.of_relu;
  a.activation = s.activation;
  a.bias = static_cast<const C*>(s.bias);
  a.product = static_cast<S*>(s.product);
  a.partial = static_cast<C*>(s.partial);
  return a;
}

template <class S>
void sum_columns_as(std::span<const ColumnSums> all, cudaStream_t stream) {
  const ColumnSums& s = all.front();
  const std::int64_t parts = column_parts(s.rows, s.columns);
  Together<ColumnArgs<S>> args{};
  std::array<PartSums, kColumnSumsTogether> rest;
  bool vectors = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    args.of[i] = args_of<S>(all[i], parts);
    rest[i] = {all[i].partial, all[i].sums};
    vectors = vectors && in_vectors<S>(all[i]);
  }
  const auto grid = [&](std::int64_t each) {
    return dim3(static_cast<unsigned>(ceil_div(s.columns, 32 * each)), static_cast<unsigned>(parts),
                static_cast<unsigned>(all.size()));
  };
  if (vectors)
    sum_part<S, kVector<S>><<<grid(kVector<S>), kThreads, 0, stream>>>(args);
  else
    sum_part<S, 1><<<grid(1), kThreads, 0, stream>>>(args);
  check_launch("column sums");
  if (s.partial != nullptr)
    sum_parts(DTypeOf<Compute<S>>::value, std::span(rest).first(all.size()),
              {parts, s.columns, s.accumulate}, stream);
}

}  // namespace

std::int64_t column_parts(std::int64_t rows, std::int64_t columns) {
  const std::int64_t most =
      std::max<std::int64_t>(kBlocks / ceil_div(std::max<std::int64_t>(columns, 1), 256), 1);
  return std::max<std::int64_t>(std::min(most, ceil_div(rows, kLeastRows)), 1);
}

void sum_columns(std::span<const ColumnSums> all, cudaStream_t stream) {
  if (all.empty() || all.front().columns == 0) return;
  for_storage(all.front().dtype, [&](auto type) { sum_columns_as<decltype(type)>(all, stream); });
}

void sum_parts(DType dtype, std::span<const PartSums> all, const PartShape& shape,
               cudaStream_t stream) {
  if (all.empty() || shape.columns == 0) return;
  Together<PartSums> args{};
  std::ranges::copy(all, std::begin(args.of));
  const dim3 grid(static_cast<unsigned>(ceil_div(shape.columns, 32)),
                  static_cast<unsigned>(all.size()));
  if (dtype == DType::f64)
    sum_of_parts<double><<<grid, 32 * kTall, 0, stream>>>(args, shape);
  else
    sum_of_parts<float><<<grid, 32 * kTall, 0, stream>>>(args, shape);
  check_launch("column sums");
}

}  // namespace heddle::cuda
