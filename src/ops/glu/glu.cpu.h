// y = f(gate)·up on rows, and its gradients, recomputed from the inputs.
#include "backend/cpu/narrow_math.h"
#include "backend/cpu/own_storage.h"
#include "base/divide.h"
#include "ops/glu/glu.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace glu_detail {

// body(row, begin, end): pieces of rows, on all threads, that depend on the shape only. A piece
// begins on a multiple of kGrain elements, so it is aligned when the row is.
template <class Body>
HWY_INLINE void for_row_pieces(std::int64_t rows, std::int64_t columns, Body body) {
  if (columns == 0) return;
  const std::int64_t cuts = ceil_div(columns, kGrain);
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

// A kind of gate on vectors: y of gate and up, and both gradients, which take the places of gate
// and up. w: dy.

struct SiluGate {
  template <class S, class D>
  HWY_INLINE Vec<D> y(D d, Vec<D> g, Vec<D> u) const {
    return hn::Mul(silu_for<S>(d, g), u);
  }
  // s = sigmoid(g): dup = dy·g·s, dgate = dy·up·s·(1 + g·(1 - s))
  template <class S, class D>
  HWY_INLINE void gradients(D d, Vec<D> w, Vec<D>& g, Vec<D>& u) const {
    const auto one = constant(d, 1);
    const auto sig = sigmoid_for<S>(d, g);
    const auto weighted = hn::Mul(w, sig);
    const auto slope = hn::MulAdd(g, hn::Sub(one, sig), one);
    const auto dgate = hn::Mul(hn::Mul(weighted, slope), u);
    u = hn::Mul(weighted, g);
    g = dgate;
  }
};

// dup = dy·f(g), dgate = dy·up·f'(g)
template <class D>
HWY_INLINE void gate_gradients(Vec<D> w, const WithDerivative<D>& f, Vec<D>& g, Vec<D>& u) {
  g = hn::Mul(hn::Mul(w, u), f.derivative);
  u = hn::Mul(w, f.value);
}

struct GeluGate {
  template <class S, class D>
  HWY_INLINE Vec<D> y(D d, Vec<D> g, Vec<D> u) const {
    return hn::Mul(gelu_for<S>(d, g), u);
  }
  template <class S, class D>
  HWY_INLINE void gradients(D d, Vec<D> w, Vec<D>& g, Vec<D>& u) const {
    gate_gradients<D>(w, {gelu_for<S>(d, g), gelu_derivative(d, g)}, g, u);
  }
};

struct GeluTanhGate {
  template <class S, class D>
  HWY_INLINE Vec<D> y(D d, Vec<D> g, Vec<D> u) const {
    return hn::Mul(gelu_tanh_for<S>(d, g), u);
  }
  template <class S, class D>
  HWY_INLINE void gradients(D d, Vec<D> w, Vec<D>& g, Vec<D>& u) const {
    gate_gradients<D>(w, gelu_tanh_with_derivative_for<S>(d, g), g, u);
  }
};

// g = min(gate, limit), u = up between -limit and limit, s = sigmoid(1.702·g): y = g·s·(u + 1),
// dup = dy·g·s, dgate = dy·(u + 1)·s·(1 + 1.702·g·(1 - s)); 0 where a limit was passed.
struct ClampedGate {
  double limit;

  template <class S, class D>
  HWY_INLINE Vec<D> y(D d, Vec<D> gate, Vec<D> up) const {
    const auto g = at_most(d, gate, constant(d, limit));
    const auto u = bounded(d, up, limit);
    const auto bent = hn::Mul(g, sigmoid_for<S>(d, hn::Mul(g, constant(d, kQuickGelu))));
    return hn::MulAdd(bent, u, bent);
  }
  template <class S, class D>
  HWY_INLINE void gradients(D d, Vec<D> w, Vec<D>& gate, Vec<D>& up) const {
    const auto one = constant(d, 1), end = constant(d, limit);
    const auto g = at_most(d, gate, end);
    const auto scaled_gate = hn::Mul(g, constant(d, kQuickGelu));
    const auto s = sigmoid_for<S>(d, scaled_gate);
    const auto weighted = hn::Mul(w, s);
    // Far below 0, s is 0 and its factor must not become infinite.
    const auto near = at_least(d, scaled_gate, constant(d, -1024));
    const auto slope = hn::MulAdd(near, hn::Sub(one, s), one);
    const auto dgate = hn::Mul(hn::Mul(weighted, slope), hn::Add(bounded(d, up, limit), one));
    const auto dup = hn::Mul(weighted, g);
    // NaN passes no limit, and stays.
    gate = hn::IfThenZeroElse(hn::Gt(gate, end), dgate);
    up = hn::IfThenZeroElse(hn::Gt(hn::Abs(up), end), dup);
  }
};

template <class Use>
void with_gate(Gate kind, double limit, Use use) {
  switch (kind) {
    case Gate::silu: return use(SiluGate{});
    case Gate::gelu: return use(GeluGate{});
    case Gate::gelu_tanh: return use(GeluTanhGate{});
    case Gate::clamped: return use(ClampedGate{limit});
  }
}

template <class S, class G>
void forward_rows(const GluArgs& a, G f) {
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
      for (int k = 0; k < io.kVectors; ++k) g[k] = f.template y<S>(d, g[k], u[k]);
      io.store(d, g, y + i, past);
    });
  });
}

template <class S, class G>
void backward_rows(const GluBackwardArgs& a, G f) {
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
      Vec<Tag<S>> g[2], u[2], w[2];
      io.load(d, gate + i, g);
      io.load(d, up + i, u);
      io.load(d, dy + i, w);
      for (int k = 0; k < io.kVectors; ++k) f.template gradients<S>(d, w[k], g[k], u[k]);
      io.store(d, u, dups + at + i, past);
      io.store(d, g, dgates + at + i, past);
    });
  });
}

template <Types kTypes>
void forward(const GluArgs& a) noexcept {
  for_types<kTypes, GluKernels>(a.dtype, &GluKernels::forward, a, [&](auto s) {
    with_gate(a.kind, a.limit, [&](auto gate) { forward_rows<decltype(s)>(a, gate); });
  });
}

inline void backward(const GluBackwardArgs& a) noexcept {
  for_own_storage<GluGradientKernels>(a.dtype, &GluGradientKernels::backward, a, [&](auto s) {
    with_gate(a.kind, a.limit, [&](auto gate) { backward_rows<decltype(s)>(a, gate); });
  });
}

}  // namespace glu_detail

const GluKernels glu_kernels{glu_detail::forward<Types::narrow>};
const GluKernels glu_f64_kernels{glu_detail::forward<Types::f64>};
const GluGradientKernels glu_gradient_kernels{glu_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
