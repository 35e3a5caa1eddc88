#include "backend/cuda/columns.h"

#include "backend/cuda/vectors.cuh"

namespace heddle::cuda {

namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kTall = 32;  // threads down a column of partial sums

// A part is this many rows at least, and there are at most about kBlocks blocks in all.
constexpr std::int64_t kLeastRows = 64, kBlocks = 1024;

template <class S>
struct ColumnArgs {
  std::int64_t rows, columns, stride, rows_of_part;
  const S* x;
  const S* slope;
  bool of_relu;
  S* product;
  Compute<S>* partial;
};

// kEach neighbouring columns of a row.
template <class S, int kEach>
struct Line {
  Compute<S> v[kEach];

  __device__ void load(const S* p) {
    if constexpr (kEach == 1) {
      v[0] = wide(*p);
    } else {
      const Values<S> from = cuda::load(p);
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

// A block sums 32·kEach columns over the rows of one part: warp w takes the rows w, w + 8, ..., and
// the warps' sums are added in their order. A column's order does not depend on kEach.
template <class S, int kEach>
__global__ void __launch_bounds__(kThreads) sum_part(const ColumnArgs<S> a) {
  using C = Compute<S>;
  __shared__ C total[32 * kEach];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = (std::int64_t{blockIdx.x} * 32 + lane) * kEach;
  const bool there = column < a.columns;
  const std::int64_t first = blockIdx.y * a.rows_of_part;
  const std::int64_t last = first + a.rows_of_part < a.rows ? first + a.rows_of_part : a.rows;
  C sums[kEach] = {};
  if (there) {
#pragma unroll 4
    for (std::int64_t row = first + warp; row < last; row += kWarps) {
      Line<S, kEach> x;
      x.load(a.x + row * a.stride + column);
      if (a.slope != nullptr) {
        Line<S, kEach> slope;
        slope.load(a.slope + row * a.columns + column);
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          x.v[e] *= a.of_relu ? (slope.v[e] > C{0} ? C{1} : C{0}) : slope.v[e];
        x.store(a.product + row * a.columns + column);
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) sums[e] += x.v[e];
    }
  }
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
    sum_of_parts(const C* partial, std::int64_t parts, std::int64_t columns, C* sums,
                 bool accumulate) {
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
  sums[column] = accumulate ? sums[column] + own : own;
}

// Vectors want every row to begin at a multiple of 16 bytes; the last vector of a row may reach
// into the gap before the next row, where there is one.
template <class S>
bool in_vectors(const ColumnSums& s) {
  const auto whole = (s.columns + kVector<S> - 1) / kVector<S> * kVector<S>;
  const bool x = rows_aligned(static_cast<const S*>(s.x), s.stride) && s.stride >= whole;
  if (s.slope == nullptr) return x;
  return x && s.columns == whole && aligned(s.slope) && aligned(s.product);
}

template <class S>
void sum_columns_as(const ColumnSums& s, cudaStream_t stream) {
  using C = Compute<S>;
  const std::int64_t parts = column_parts(s.rows, s.columns);
  ColumnArgs<S> a;
  a.rows = s.rows;
  a.columns = s.columns;
  a.stride = s.stride;
  a.rows_of_part = divided(s.rows, parts);
  a.x = static_cast<const S*>(s.x);
  a.slope = static_cast<const S*>(s.slope);
  a.of_relu = s.of_relu;
  a.product = static_cast<S*>(s.product);
  a.partial = static_cast<C*>(s.partial);
  const auto grid = [&](std::int64_t each) {
    return dim3(static_cast<unsigned>(divided(s.columns, 32 * each)), static_cast<unsigned>(parts));
  };
  if (in_vectors<S>(s))
    sum_part<S, kVector<S>><<<grid(kVector<S>), kThreads, 0, stream>>>(a);
  else
    sum_part<S, 1><<<grid(1), kThreads, 0, stream>>>(a);
  check_launch("column sums");
  if (s.partial != nullptr)
    sum_parts(DTypeOf<C>::value, s.partial, parts, s.columns, s.sums, s.accumulate, stream);
}

}  // namespace

std::int64_t column_parts(std::int64_t rows, std::int64_t columns) {
  const std::int64_t most =
      std::max<std::int64_t>(kBlocks / divided(std::max<std::int64_t>(columns, 1), 256), 1);
  return std::max<std::int64_t>(std::min(most, divided(rows, kLeastRows)), 1);
}

void sum_columns(const ColumnSums& s, cudaStream_t stream) {
  if (s.columns == 0) return;
  for_storage(s.dtype, [&](auto type) { sum_columns_as<decltype(type)>(s, stream); });
}

void sum_parts(DType dtype, const void* partial, std::int64_t parts, std::int64_t columns,
               void* sums, bool accumulate, cudaStream_t stream) {
  if (columns == 0) return;
  const auto run = [&](auto type) {
    using C = decltype(type);
    sum_of_parts<C><<<static_cast<unsigned>(divided(columns, 32)), 32 * kTall, 0, stream>>>(
        static_cast<const C*>(partial), parts, columns, static_cast<C*>(sums), accumulate);
  };
  if (dtype == DType::f64)
    run(double{});
  else
    run(float{});
  check_launch("column sums");
}

}  // namespace heddle::cuda
