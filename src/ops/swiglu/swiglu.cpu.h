// y = silu(gate)·up on rows, and its gradients, recomputed from the inputs.
#include "backend/cpu/narrow_math.h"
#include "backend/cpu/own_storage.h"
#include "ops/support/rows.cpu.h"
#include "ops/swiglu/swiglu.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace swiglu_detail {

// body(row, begin, end): pieces of rows, on all threads, that depend on the shape only. A piece
// begins on a multiple of kGrain elements, so it is aligned when the row is.
template <class Body>
HWY_INLINE void for_row_pieces(std::int64_t rows, std::int64_t columns, Body body) {
  if (columns == 0) return;
  const std::int64_t cuts = (columns + kGrain - 1) / kGrain;
  parallel_ranges(
      rows * cuts, cuts > 1 ? 1 : row_grain(columns), [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t piece = first; piece < last; ++piece) {
          const std::int64_t begin = piece % cuts * kGrain;
          body(piece / cuts, begin, columns - begin < kGrain ? columns : begin + kGrain);
        }
        hwy::FlushStream();
      });
}

// One row alone may have any length: only its whole vectors are streamed.
template <class S>
HWY_INLINE bool streamable_rows(const S* p, std::int64_t rows, std::int64_t step) {
  return streamable(p, rows == 1 ? 0 : step);
}

inline void forward(const SwigluArgs& a) noexcept {
  for_own_storage<SwigluKernels>(a.dtype, &SwigluKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    const Tag<S> d;
    auto* ys = static_cast<S*>(a.y);
    const bool past = a.stream && streamable_rows(ys, a.rows, a.columns);
    for_row_pieces(a.rows, a.columns, [&](std::int64_t r, std::int64_t begin, std::int64_t end) {
      const S* gate = static_cast<const S*>(a.gate) + r * a.in_step + begin;
      const S* up = static_cast<const S*>(a.up) + r * a.in_step + begin;
      S* y = ys + r * a.columns + begin;
      each_pair(d, end - begin, [&](std::int64_t i, auto io) {
        Vec<Tag<S>> g[2], u[2];
        io.load(d, gate + i, g);
        io.load(d, up + i, u);
        for (int k = 0; k < io.kVectors; ++k) g[k] = hn::Mul(silu_for<S>(d, g[k]), u[k]);
        io.store(d, g, y + i, past);
      });
    });
  });
}

// s = sigmoid(g): dup = dy·g·s, dgate = dy·up·s·(1 + g·(1 - s))
inline void backward(const SwigluBackwardArgs& a) noexcept {
  for_own_storage<SwigluKernels>(a.dtype, &SwigluKernels::backward, a, [&](auto s) {
    using S = decltype(s);
    const Tag<S> d;
    auto* dgates = static_cast<S*>(a.dgate);
    auto* dups = static_cast<S*>(a.dup);
    const bool past = a.stream && streamable_rows(dgates, a.rows, a.in_step) &&
                      streamable_rows(dups, a.rows, a.in_step);
    for_row_pieces(a.rows, a.columns, [&](std::int64_t r, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = r * a.in_step + begin;
      const S* gate = static_cast<const S*>(a.gate) + at;
      const S* up = static_cast<const S*>(a.up) + at;
      const S* dy = static_cast<const S*>(a.dy) + r * a.columns + begin;
      each_pair(d, end - begin, [&](std::int64_t i, auto io) {
        const auto one = constant(d, 1);
        Vec<Tag<S>> g[2], u[2], w[2];
        io.load(d, gate + i, g);
        io.load(d, up + i, u);
        io.load(d, dy + i, w);
        for (int k = 0; k < io.kVectors; ++k) {
          const auto sig = sigmoid_for<S>(d, g[k]);
          const auto weighted = hn::Mul(w[k], sig);
          const auto slope = hn::MulAdd(g[k], hn::Sub(one, sig), one);
          u[k] = hn::Mul(hn::Mul(weighted, slope), u[k]);
          g[k] = hn::Mul(weighted, g[k]);
        }
        io.store(d, g, dups + at + i, past);
        io.store(d, u, dgates + at + i, past);
      });
    });
  });
}

}  // namespace swiglu_detail

const SwigluKernels swiglu_kernels{swiglu_detail::forward, swiglu_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
