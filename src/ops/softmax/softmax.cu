// softmax and log_softmax on CUDA: a warp per row, or a block where rows are long.
#include <cmath>

#include "backend/cuda/sums.cuh"
#include "base/divide.h"
#include "ops/softmax/softmax.call.h"
#include "ops/support/check.h"

namespace heddle::cuda {

namespace {

// Rows longer than this are shared by a whole block.
constexpr std::int64_t kLongRow = 1024;

// The largest element, or the lowest finite number: of a row of nothing but -inf every x - largest
// is -inf, and the sum of exponentials 0.
template <int kLanes, class C>
__device__ C largest_of_row(C own) {
  const C lowest = std::is_same_v<C, double> ? C(-1e308) : C(-3e38);
  const C all = joined_of_block<kLanes>(own, [](C a, C b) { return a != a || a > b ? a : b; });
  return all < lowest ? lowest : all;
}

template <class S, int kLanes>
__global__ void __launch_bounds__(kThreads)
    softmax_rows(bool logarithm, std::int64_t rows, std::int64_t columns, const S* x, S* y) {
  using C = Compute<S>;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kRows = kThreads / kLanes;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes; row < rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const S* const from = x + row * columns;
    S* const to = y + row * columns;
    C own = -static_cast<C>(INFINITY);
    for (std::int64_t i = lane; i < columns; i += kLanes) {
      const C v = wide(from[i]);
      own = own != own || own > v ? own : v;
    }
    const C largest = largest_of_row<kLanes>(own);
    C total = 0;
    for (std::int64_t i = lane; i < columns; i += kLanes)
      total += std::exp(static_cast<C>(wide(from[i])) - largest);
    total = sum_of_row<kLanes>(total);
    const C shift = largest + std::log(total == C{0} ? C{1} : total);
    const C inverse = total == C{0} ? C{0} : C{1} / total;
    for (std::int64_t i = lane; i < columns; i += kLanes) {
      const C v = wide(from[i]);
      to[i] = narrow<S>(logarithm ? v - shift : std::exp(v - largest) * inverse);
    }
  }
}

// softmax:     dx = y·(dy - Σ dy·y)
// log_softmax: dx = dy - exp(y)·Σ dy
template <class S, int kLanes>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_rows(bool logarithm, std::int64_t rows, std::int64_t columns, const S* y,
                          const S* dy, S* dx) {
  using C = Compute<S>;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kRows = kThreads / kLanes;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes; row < rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const std::int64_t first = row * columns;
    C total = 0;
    bool any = false;  // log_softmax: an element above -inf
    for (std::int64_t i = lane; i < columns; i += kLanes) {
      const C v = wide(y[first + i]), d = wide(dy[first + i]);
      total += logarithm ? d : v * d;
      any = any || !(v == -static_cast<C>(INFINITY));
    }
    total = sum_of_row<kLanes>(total);
    const C counts = sum_of_row<kLanes>(any ? C{1} : C{0});
    for (std::int64_t i = lane; i < columns; i += kLanes) {
      const C v = wide(y[first + i]), d = wide(dy[first + i]);
      const C g = !logarithm ? v * (d - total) : counts == C{0} ? C{0} : d - std::exp(v) * total;
      dx[first + i] = narrow<S>(g);
    }
  }
}

// Calls f with the number of threads that share a row, and the blocks that this takes.
template <class F>
void by_length(std::int64_t rows, std::int64_t columns, F f) {
  if (columns > kLongRow)
    f(std::integral_constant<int, kThreads>(), grid_for(rows));
  else
    f(std::integral_constant<int, 32>(), grid_for(ceil_div(rows, kThreads / 32)));
}

void run_softmax(ops::SoftmaxCall& c) {
  const std::int64_t rows = ops::rows_of(c.x), columns = c.x.shape().back();
  if (rows * columns == 0) return;
  cudaStream_t const stream = stream_of(c.y.device());
  for_storage(c.x.dtype(), [&](auto s) {
    using S = decltype(s);
    by_length(rows, columns, [&](auto lanes, unsigned blocks) {
      softmax_rows<S, lanes()>
          <<<blocks, kThreads, 0, stream>>>(c.logarithm, rows, columns, in<S>(c.x), out<S>(c.y));
    });
  });
  check_launch("softmax");
}

void run_softmax_backward(ops::SoftmaxBackwardCall& c) {
  const std::int64_t rows = ops::rows_of(c.y), columns = c.y.shape().back();
  if (rows * columns == 0) return;
  cudaStream_t const stream = stream_of(c.dx.device());
  for_storage(c.y.dtype(), [&](auto s) {
    using S = decltype(s);
    by_length(rows, columns, [&](auto lanes, unsigned blocks) {
      softmax_backward_rows<S, lanes()><<<blocks, kThreads, 0, stream>>>(
          c.logarithm, rows, columns, in<S>(c.y), in<S>(c.dy), out<S>(c.dx));
    });
  });
  check_launch("softmax, backward");
}

}  // namespace

void add_softmax_routines() {
  add<ops::SoftmaxCall>({run_softmax});
  add<ops::SoftmaxBackwardCall>({run_softmax_backward});
}

}  // namespace heddle::cuda
