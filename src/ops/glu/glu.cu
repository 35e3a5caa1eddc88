// glu on CUDA.
#include <cmath>

#include "backend/cuda/gate.cuh"
#include "backend/cuda/held.h"
#include "backend/cuda/vectors.cuh"
#include "ops/glu/glu.call.h"

namespace heddle::cuda {

namespace {

// y = f(gate)·up, dup = dy·f(gate), dgate = dy·up·f'(gate); see glu.cpp for the formulas.
template <class C>
struct GluGradients {
  C gate, up;
};

template <class C>
__device__ GluGradients<C> glu_gradients(Gate kind, C limit, C gate, C up, C dy) {
  if (kind == Gate::silu) {
    const C s = sigmoid(gate);
    return {dy * up * s * (C{1} + gate * (C{1} - s)), dy * gate * s};
  }
  if (kind != Gate::clamped) {
    const Activated<C> f = activated(activation_of(kind), gate);
    return {dy * up * f.slope, dy * f.value};
  }
  const C g = gate > limit ? limit : gate;
  const C u = up > limit ? limit : up < -limit ? -limit : up;
  const C s = sigmoid(C{kQuickGelu} * g);
  return {gate > limit ? C{0} : dy * (u + C{1}) * silu_slope(C{kQuickGelu} * g, s),
          up > limit || up < -limit ? C{0} : dy * g * s};
}

// Job i of rows that are cut into jobs of kEach neighbours: where they lie.
struct Place {
  std::int64_t in, dense;
};

template <int kEach>
__device__ Place place_of(const ops::GluLayout& l, std::int64_t i) {
  const std::int64_t jobs = l.columns / kEach;
  const std::int64_t row = l.rows == 1 ? 0 : i / jobs;
  const std::int64_t column = (i - row * jobs) * kEach;
  return {row * l.in_step + column, row * l.columns + column};
}

template <class S>
bool in_vectors(const ops::GluLayout& l) {
  return l.columns % kVector<S> == 0 && (l.rows == 1 || l.in_step % kVector<S> == 0);
}

// With the product that makes the halves, if that waits for it.
bool gated_with_product(ops::GluCall& c) {
  const ops::GluLayout& l = c.layout;
  if (c.y.dtype() != DType::bf16 || l.rows > kFewRows || l.in_step != 2 * l.columns) return false;
  const bf16* const gate = in<bf16>(c.gate);
  if (in<bf16>(c.up) != gate + l.columns) return false;
  FewProduct how;
  how.m = static_cast<int>(l.rows);
  how.part[0].n = static_cast<int>(2 * l.columns);
  how.gated = out<bf16>(c.y);
  how.gate = c.options.gate;
  how.limit = static_cast<float>(c.options.limit);
  const HeldBack held = held_of(c.y.device());
  return held.work.gate(how, gate, held.stream);
}

template <class S>
void glu_as(ops::GluCall& c) {
  using C = Compute<S>;
  const ops::GluLayout l = c.layout;
  const S* const gate = in<S>(c.gate);
  const S* const up = in<S>(c.up);
  S* const y = out<S>(c.y);
  const Gate kind = c.options.gate;
  const C limit = static_cast<C>(c.options.limit);
  cudaStream_t const stream = stream_of(c.y.device());
  if (in_vectors<S>(l) && aligned(gate) && aligned(up) && aligned(y))
    return each("glu", stream, l.rows * l.columns / kVector<S>, [=] __device__(std::int64_t i) {
      const Place at = place_of<kVector<S>>(l, i);
      store(y + at.dense, mapped<S>([=](C g, C u) { return gated(kind, limit, g, u); },
                                    load(gate + at.in), load(up + at.in)));
    });
  each("glu", stream, l.rows * l.columns, [=] __device__(std::int64_t i) {
    const Place at = place_of<1>(l, i);
    y[at.dense] = narrow<S>(gated<C>(kind, limit, wide(gate[at.in]), wide(up[at.in])));
  });
}

template <class S>
void glu_backward_as(ops::GluBackwardCall& c) {
  using C = Compute<S>;
  const ops::GluLayout l = c.layout;
  const S* const gate = in<S>(c.gate);
  const S* const up = in<S>(c.up);
  const S* const dy = in<S>(c.dy);
  S* const dgate = out<S>(c.dgate);
  S* const dup = out<S>(c.dup);
  const Gate kind = c.options.gate;
  const C limit = static_cast<C>(c.options.limit);
  cudaStream_t const stream = stream_of(c.dgate.device());
  if (in_vectors<S>(l) && aligned(gate) && aligned(up) && aligned(dy) && aligned(dgate) &&
      aligned(dup))
    return each(
        "glu, backward", stream, l.rows * l.columns / kVector<S>, [=] __device__(std::int64_t i) {
          const Place at = place_of<kVector<S>>(l, i);
          const Values<S> g = load(gate + at.in), u = load(up + at.in);
          const Values<S> d = load(dy + at.dense);
          store(dgate + at.in,
                mapped<S>([=](C x, C y, C e) { return glu_gradients(kind, limit, x, y, e).gate; },
                          g, u, d));
          store(dup + at.in,
                mapped<S>([=](C x, C y, C e) { return glu_gradients(kind, limit, x, y, e).up; }, g,
                          u, d));
        });
  each("glu, backward", stream, l.rows * l.columns, [=] __device__(std::int64_t i) {
    const Place at = place_of<1>(l, i);
    const GluGradients<C> g =
        glu_gradients<C>(kind, limit, wide(gate[at.in]), wide(up[at.in]), wide(dy[at.dense]));
    dgate[at.in] = narrow<S>(g.gate);
    dup[at.in] = narrow<S>(g.up);
  });
}

void run_glu(ops::GluCall& c) {
  if (gated_with_product(c)) return;
  for_storage(c.y.dtype(), [&](auto s) { glu_as<decltype(s)>(c); });
}

void run_glu_backward(ops::GluBackwardCall& c) {
  for_storage(c.dy.dtype(), [&](auto s) { glu_backward_as<decltype(s)>(c); });
}

}  // namespace

void add_glu_routines() {
  add<ops::GluCall>({run_glu});
  add<ops::GluBackwardCall>({run_glu_backward});
}

}  // namespace heddle::cuda
