// Normalised rows on CUDA, forward and backward; rms_norm and layer_norm are this template without
// and with the mean. A row comes from memory once: the threads that share it hold it in registers.
#include <array>
#include <span>

#include "backend/cuda/held.h"
#include "backend/cuda/products/columns.h"
#include "backend/cuda/sums.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/norm/norm.call.h"
#include "ops/support/check.h"

namespace heddle::cuda {
namespace norm {

template <class S>
struct Forward {
  std::int64_t rows;
  int columns;
  Compute<S> eps;
  const S* x;
  const S* residual;
  const Compute<S>* gain;
  const Compute<S>* bias;
  S* sum;
  S* y;
  Compute<S>* mean;
  Compute<S>* rstd;
};

template <class S>
struct Backward {
  std::int64_t rows, rows_of_part;
  int columns;
  const S* x;
  const Compute<S>* gain;
  const Compute<S>* mean;
  const Compute<S>* rstd;
  const S* dy;
  const S* dsum;
  S* dx;
  Compute<S>* dgain;  // partial sums, [parts, columns]; null: not wanted
  Compute<S>* dbias;
};

template <class C>
__device__ inline C one_over_root(C v) {
  return C{1} / std::sqrt(v);
}

// The variance is the mean of (x - mean)², from registers: E[x²] - mean² would cancel.
template <class S, bool kCentred, int kLanes, int kHeld>
__global__ void __launch_bounds__(kThreads) forward_rows(const Forward<S> a) {
  using C = Compute<S>;
  constexpr int kEach = kVector<S>;
  constexpr int kRows = kThreads / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int vectors = a.columns / kEach;
  const C share = C{1} / static_cast<C>(a.columns);
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes; row < a.rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const std::int64_t first = row * a.columns;
    uint4 held[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors)
        held[i] = load_raw(a.x + first + (i * kLanes + lane) * kEach);
    if (a.residual != nullptr) {
      uint4 other[kHeld];
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (i * kLanes + lane < vectors)
          other[i] = load_raw(a.residual + first + (i * kLanes + lane) * kEach);
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (i * kLanes + lane < vectors) {
          // The value normalised is the sum as stored, rounded.
          held[i] = narrowed<S>(
              mapped<S>([](C v, C w) { return v + w; }, widened<S>(held[i]), widened<S>(other[i])));
          *reinterpret_cast<uint4*>(a.sum + first + (i * kLanes + lane) * kEach) = held[i];
        }
    }
    C mean = 0;
    if constexpr (kCentred) {
      C total = 0;
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (i * kLanes + lane < vectors) {
          const Values<S> v = widened<S>(held[i]);
#pragma unroll
          for (int e = 0; e < kEach; ++e) total += v.v[e];
        }
      mean = sum_of_row<kLanes>(total) * share;
    }
    C squares = 0;
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors) {
        const Values<S> v = widened<S>(held[i]);
#pragma unroll
        for (int e = 0; e < kEach; ++e) squares += (v.v[e] - mean) * (v.v[e] - mean);
      }
    const C rstd = one_over_root(sum_of_row<kLanes>(squares) * share + a.eps);
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors) {
        const int at = (i * kLanes + lane) * kEach;
        Values<S> v = mapped<S>([=](C w) { return (w - mean) * rstd; }, widened<S>(held[i]));
        if (a.gain != nullptr)
          v = mapped<S>([](C w, C g) { return w * g; }, v, load_parameters<S>(a.gain + at));
        if (a.bias != nullptr)
          v = mapped<S>([](C w, C b) { return w + b; }, v, load_parameters<S>(a.bias + at));
        store(a.y + first + at, v);
      }
    if (lane == 0 && a.rstd != nullptr) a.rstd[row] = rstd;
    if (lane == 0 && a.mean != nullptr) a.mean[row] = mean;
  }
}

// Any width and alignment: a block per row, which reads it again for each pass.
template <class S, bool kCentred>
__global__ void __launch_bounds__(kThreads) forward_any(const Forward<S> a) {
  using C = Compute<S>;
  const C share = C{1} / static_cast<C>(a.columns);
  const int begin = static_cast<int>(threadIdx.x);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const S* from = a.x + row * a.columns;
    if (a.residual != nullptr) {
      S* const sum = a.sum + row * a.columns;
      for (int i = begin; i < a.columns; i += kThreads)
        sum[i] = narrow<S>(wide(from[i]) + wide(a.residual[row * a.columns + i]));
      from = sum;  // each thread reads what it wrote itself
    }
    C mean = 0;
    if constexpr (kCentred) {
      C total = 0;
      for (int i = begin; i < a.columns; i += kThreads) total += wide(from[i]);
      mean = sum_of_row<kThreads>(total) * share;
    }
    C squares = 0;
    for (int i = begin; i < a.columns; i += kThreads)
      squares += (wide(from[i]) - mean) * (wide(from[i]) - mean);
    const C rstd = one_over_root(sum_of_row<kThreads>(squares) * share + a.eps);
    for (int i = begin; i < a.columns; i += kThreads) {
      C v = (wide(from[i]) - mean) * rstd;
      if (a.gain != nullptr) v *= a.gain[i];
      if (a.bias != nullptr) v += a.bias[i];
      a.y[row * a.columns + i] = narrow<S>(v);
    }
    if (begin == 0 && a.rstd != nullptr) a.rstd[row] = rstd;
    if (begin == 0 && a.mean != nullptr) a.mean[row] = mean;
  }
}

// x̂ and w = dy·gain of one element.
template <class C>
struct Terms {
  C normal, weighed;
};

template <class C>
__device__ inline Terms<C> terms_of(C x, C dy, C gain, C mean, C rstd) {
  return {(x - mean) * rstd, dy * gain};
}

// Sums of a block's threads for the same columns, the warps one after the other; where the whole
// block shares a row, every thread has columns of its own.
template <class S, int kLanes, int kHeld>
__device__ void write_part(const Compute<S> (&own)[kHeld][kVector<S>], int columns,
                           Compute<S>* part) {
  using C = Compute<S>;
  constexpr int kEach = kVector<S>;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if constexpr (kLanes == kThreads) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if ((i * kLanes + lane) * kEach < columns)
#pragma unroll
        for (int e = 0; e < kEach; ++e) part[(i * kLanes + lane) * kEach + e] = own[i][e];
  } else {
    __shared__ C total[kLanes * kHeld * kEach];
    const int warp = static_cast<int>(threadIdx.x) / kLanes;
    __syncthreads();
    for (int w = 0; w < kThreads / kLanes; ++w) {
      if (warp == w)
#pragma unroll
        for (int i = 0; i < kHeld; ++i)
#pragma unroll
          for (int e = 0; e < kEach; ++e) {
            C& sum = total[(i * kLanes + lane) * kEach + e];
            sum = w == 0 ? own[i][e] : sum + own[i][e];
          }
      __syncthreads();
    }
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += kThreads) part[i] = total[i];
  }
}

template <class S, bool kCentred, int kLanes, int kHeld>
__global__ void __launch_bounds__(kThreads) backward_rows(const Backward<S> a) {
  using C = Compute<S>;
  constexpr int kEach = kVector<S>;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int vectors = a.columns / kEach;
  const C share = C{1} / static_cast<C>(a.columns);
  const std::int64_t begin = blockIdx.x * a.rows_of_part;
  const std::int64_t end = begin + a.rows_of_part < a.rows ? begin + a.rows_of_part : a.rows;
  C dgain[kHeld][kEach] = {}, dbias[kHeld][kEach] = {};
  for (std::int64_t row = begin + threadIdx.x / kLanes; row < end; row += kThreads / kLanes) {
    const std::int64_t first = row * a.columns;
    uint4 x[kHeld], dy[kHeld], dsum[kHeld];  // all on their way before any is needed
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors) {
        const std::int64_t at = first + (i * kLanes + lane) * kEach;
        x[i] = load_raw(a.x + at);
        dy[i] = load_raw(a.dy + at);
        if (a.dsum != nullptr) dsum[i] = load_raw(a.dsum + at);
      }
    const C rstd = a.rstd[row];
    const C mean = kCentred ? a.mean[row] : C{0};
    const auto gain_at = [&](int at) {
      if (a.gain != nullptr) return load_parameters<S>(a.gain + at);
      Values<S> ones;
#pragma unroll
      for (int e = 0; e < kEach; ++e) ones.v[e] = C{1};
      return ones;
    };
    C product = 0, plain = 0;  // Σ w·x̂ and Σ w
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors) {
        const Values<S> vx = widened<S>(x[i]), vdy = widened<S>(dy[i]);
        const Values<S> gain = gain_at((i * kLanes + lane) * kEach);
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          const Terms<C> t = terms_of(vx.v[e], vdy.v[e], gain.v[e], mean, rstd);
          product += t.weighed * t.normal;
          if constexpr (kCentred) plain += t.weighed;
          dgain[i][e] += vdy.v[e] * t.normal;
          if constexpr (kCentred) dbias[i][e] += vdy.v[e];
        }
      }
    product = sum_of_row<kLanes>(product) * share;
    if constexpr (kCentred) plain = sum_of_row<kLanes>(plain) * share;
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i * kLanes + lane < vectors) {
        const int at = (i * kLanes + lane) * kEach;
        const Values<S> vx = widened<S>(x[i]), vdy = widened<S>(dy[i]), gain = gain_at(at);
        Values<S> dx;
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          const Terms<C> t = terms_of(vx.v[e], vdy.v[e], gain.v[e], mean, rstd);
          dx.v[e] = rstd * (t.weighed - t.normal * product - plain);
        }
        if (a.dsum != nullptr)
          dx = mapped<S>([](C v, C w) { return v + w; }, dx, widened<S>(dsum[i]));
        store(a.dx + first + at, dx);
      }
  }
  if (a.dgain != nullptr)
    write_part<S, kLanes, kHeld>(dgain, a.columns, a.dgain + std::int64_t{blockIdx.x} * a.columns);
  if (a.dbias != nullptr)
    write_part<S, kLanes, kHeld>(dbias, a.columns, a.dbias + std::int64_t{blockIdx.x} * a.columns);
}

// Any width and alignment; partial sums grow in memory, each column's by one thread.
template <class S, bool kCentred>
__global__ void __launch_bounds__(kThreads) backward_any(const Backward<S> a) {
  using C = Compute<S>;
  const C share = C{1} / static_cast<C>(a.columns);
  const int first = static_cast<int>(threadIdx.x);
  const std::int64_t part = std::int64_t{blockIdx.x} * a.columns;
  const std::int64_t begin = blockIdx.x * a.rows_of_part;
  const std::int64_t end = begin + a.rows_of_part < a.rows ? begin + a.rows_of_part : a.rows;
  for (int i = first; i < a.columns; i += kThreads) {
    if (a.dgain != nullptr) a.dgain[part + i] = 0;
    if (a.dbias != nullptr) a.dbias[part + i] = 0;
  }
  for (std::int64_t row = begin; row < end; ++row) {
    const S* const x = a.x + row * a.columns;
    const S* const dy = a.dy + row * a.columns;
    const C rstd = a.rstd[row];
    const C mean = kCentred ? a.mean[row] : C{0};
    const auto terms = [&](int i) {
      return terms_of<C>(wide(x[i]), wide(dy[i]), a.gain == nullptr ? C{1} : a.gain[i], mean, rstd);
    };
    C product = 0, plain = 0;
    for (int i = first; i < a.columns; i += kThreads) {
      const Terms<C> t = terms(i);
      product += t.weighed * t.normal;
      if constexpr (kCentred) plain += t.weighed;
      if (a.dgain != nullptr) a.dgain[part + i] += wide(dy[i]) * t.normal;
      if (a.dbias != nullptr) a.dbias[part + i] += wide(dy[i]);
    }
    product = sum_of_row<kThreads>(product) * share;
    if constexpr (kCentred) plain = sum_of_row<kThreads>(plain) * share;
    for (int i = first; i < a.columns; i += kThreads) {
      const Terms<C> t = terms(i);
      C dx = rstd * (t.weighed - t.normal * product - plain);
      if (a.dsum != nullptr) dx += wide(a.dsum[row * a.columns + i]);
      a.dx[row * a.columns + i] = narrow<S>(dx);
    }
  }
}

// Calls f with the number of threads that share a row and of vectors that each of them holds; false
// where no such kernel takes the row. Bits do not depend on what else the GPU does, but they do on
// this choice: it follows from the shape, and from whether rows begin at multiples of 16 bytes.
template <class S, class F>
bool by_width(std::int64_t columns, F f) {
  if constexpr (std::is_same_v<S, double>) {
    return false;
  } else {
    using std::integral_constant;
    if (columns % kVector<S> != 0) return false;
    const std::int64_t vectors = columns / kVector<S>;
    if (vectors <= 64)
      f(integral_constant<int, 32>(), integral_constant<int, 2>());
    else if (vectors <= 96)
      f(integral_constant<int, 32>(), integral_constant<int, 3>());
    else if (vectors <= 128)
      f(integral_constant<int, 32>(), integral_constant<int, 4>());
    else if (vectors <= kThreads)
      f(integral_constant<int, kThreads>(), integral_constant<int, 1>());
    else if (vectors <= 2 * kThreads)
      f(integral_constant<int, kThreads>(), integral_constant<int, 2>());
    else if (vectors <= 4 * kThreads)
      f(integral_constant<int, kThreads>(), integral_constant<int, 4>());
    else
      return false;
    return true;
  }
}

template <class S, bool kCentred>
void forward_as(ops::NormCall& c) {
  using C = Compute<S>;
  const Forward<S> a{.rows = ops::rows_of(c.x),
                     .columns = static_cast<int>(c.x.shape().back()),
                     .eps = static_cast<C>(c.eps),
                     .x = in<S>(c.x),
                     .residual = in<S>(c.residual),
                     .gain = in<C>(c.gain),
                     .bias = in<C>(c.bias),
                     .sum = out<S>(c.sum),
                     .y = out<S>(c.y),
                     .mean = out<C>(c.mean),
                     .rstd = out<C>(c.rstd)};
  if (a.rows == 0) return;
  cudaStream_t const stream = stream_of(c.y.device());
  const bool whole = aligned(a.x) && aligned(a.residual) && aligned(a.gain) && aligned(a.bias) &&
                     aligned(a.sum) && aligned(a.y);
  const bool taken = whole && by_width<S>(a.columns, [&](auto lanes, auto held) {
                       constexpr int kRows = kThreads / lanes();
                       forward_rows<S, kCentred, lanes(), held()>
                           <<<grid_for(ceil_div(a.rows, kRows)), kThreads, 0, stream>>>(a);
                     });
  if (!taken) forward_any<S, kCentred><<<grid_for(a.rows), kThreads, 0, stream>>>(a);
  check_launch("norm");
}

// Parts of the rows whose gradients of gain and bias are summed apart. Wide rows are taken one at a
// time by a whole block, so there are more blocks of fewer rows.
inline std::int64_t parts_of(const Tensor& x) {
  const std::size_t bytes = static_cast<std::size_t>(x.shape().back()) * size_of(x.dtype());
  const std::int64_t most = bytes > 2048 ? 1024 : 256, least = 8;
  return std::max<std::int64_t>(std::min(most, ceil_div(ops::rows_of(x), least)), 1);
}

inline void plan_backward(ops::NormBackwardCall& c) {
  const Shape shape{parts_of(c.x), c.x.shape().back()};
  if (c.dgain.defined()) c.dgain_partial = workspace(shape, c.dgain.dtype(), c.x);
  if (c.dbias.defined()) c.dbias_partial = workspace(shape, c.dbias.dtype(), c.x);
}

template <class S, bool kCentred>
void backward_as(ops::NormBackwardCall& c) {
  using C = Compute<S>;
  const std::int64_t rows = ops::rows_of(c.x), parts = parts_of(c.x);
  const Backward<S> a{.rows = rows,
                      .rows_of_part = ceil_div(rows, parts),
                      .columns = static_cast<int>(c.x.shape().back()),
                      .x = in<S>(c.x),
                      .gain = in<C>(c.gain),
                      .mean = in<C>(c.mean),
                      .rstd = in<C>(c.rstd),
                      .dy = in<S>(c.dy),
                      .dsum = in<S>(c.dsum),
                      .dx = out<S>(c.dx),
                      .dgain = out<C>(c.dgain_partial),
                      .dbias = out<C>(c.dbias_partial)};
  cudaStream_t const stream = stream_of(c.dx.device());
  const bool whole =
      aligned(a.x) && aligned(a.gain) && aligned(a.dy) && aligned(a.dsum) && aligned(a.dx);
  const auto blocks = static_cast<unsigned>(parts);
  const bool taken =
      whole && by_width<S>(a.columns, [&](auto lanes, auto held) {
        backward_rows<S, kCentred, lanes(), held()><<<blocks, kThreads, 0, stream>>>(a);
      });
  if (!taken) backward_any<S, kCentred><<<blocks, kThreads, 0, stream>>>(a);
  check_launch("norm, backward");
  std::array<PartSums, 2> sums;
  std::size_t count = 0;
  const auto add = [&](const Tensor& partial, Tensor& grad) {
    if (grad.defined()) sums[count++] = {in<void>(partial), out<void>(grad)};
  };
  add(c.dgain_partial, c.dgain);
  add(c.dbias_partial, c.dbias);
  const DType dtype = c.x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  sum_parts(dtype, std::span(sums).first(count), {parts, a.columns}, stream);
}

// A few rows of bf16, of which no backward pass will follow, wait for the product that reads them.
bool held_back(ops::NormCall& c) {
  const std::int64_t rows = ops::rows_of(c.x), columns = c.x.shape().back();
  if (c.x.dtype() != DType::bf16 || c.rstd.defined() || c.mean.defined() ||
      !fits_few_norm(rows, columns))
    return false;
  const FewNorm n{.rows = static_cast<int>(rows),
                  .columns = static_cast<int>(columns),
                  .centred = c.centred,
                  .eps = static_cast<float>(c.eps),
                  .x = in<bf16>(c.x),
                  .residual = in<bf16>(c.residual),
                  .gain = in<float>(c.gain),
                  .bias = in<float>(c.bias),
                  .sum = out<bf16>(c.sum),
                  .y = out<bf16>(c.y)};
  const bool whole = aligned(n.x) && aligned(n.residual) && aligned(n.gain) && aligned(n.bias) &&
                     aligned(n.sum) && aligned(n.y);
  if (!whole) return false;
  const HeldBack held = held_of(c.y.device());
  held.work.hold(n, held.stream);
  return true;
}

void forward(ops::NormCall& c) {
  if (held_back(c)) return;
  for_storage(c.x.dtype(), [&](auto s) {
    c.centred ? forward_as<decltype(s), true>(c) : forward_as<decltype(s), false>(c);
  });
}

void backward(ops::NormBackwardCall& c) {
  for_storage(c.x.dtype(), [&](auto s) {
    c.centred ? backward_as<decltype(s), true>(c) : backward_as<decltype(s), false>(c);
  });
}

}  // namespace norm

void add_norm_routines() {
  add<ops::NormCall>({norm::forward});
  add<ops::NormBackwardCall>({norm::backward, norm::plan_backward});
}

}  // namespace heddle::cuda
