// swiglu on CUDA.
#include <cmath>

#include "backend/cuda/activation.cuh"
#include "backend/cuda/vectors.cuh"
#include "ops/swiglu/swiglu.call.h"

namespace heddle::cuda {

namespace {

// With s = sigmoid(gate):
//   dup = dy·gate·s,  dgate = dy·up·s·(1 + gate·(1 - s))
template <class C>
__device__ C gated(C gate, C up) {
  return gate * sigmoid(gate) * up;
}
template <class C>
__device__ C gate_gradient(C gate, C up, C dy) {
  const C s = sigmoid(gate);
  return dy * up * s * (C{1} + gate * (C{1} - s));
}
template <class C>
__device__ C up_gradient(C gate, C dy) {
  return dy * gate * sigmoid(gate);
}

// Job i of rows that are cut into jobs of kEach neighbours: where they lie.
struct Place {
  std::int64_t in, dense;
};

template <int kEach>
__device__ Place place_of(const ops::SwigluLayout& l, std::int64_t i) {
  const std::int64_t jobs = l.columns / kEach;
  const std::int64_t row = l.rows == 1 ? 0 : i / jobs;
  const std::int64_t column = (i - row * jobs) * kEach;
  return {row * l.in_step + column, row * l.columns + column};
}

template <class S>
bool in_vectors(const ops::SwigluLayout& l) {
  return l.columns % kVector<S> == 0 && (l.rows == 1 || l.in_step % kVector<S> == 0);
}

template <class S>
void swiglu_as(ops::SwigluCall& c) {
  using C = Compute<S>;
  const ops::SwigluLayout l = c.layout;
  const S* const gate = in<S>(c.gate);
  const S* const up = in<S>(c.up);
  S* const y = out<S>(c.y);
  cudaStream_t const stream = stream_of(c.y.device());
  if (in_vectors<S>(l) && aligned(gate) && aligned(up) && aligned(y))
    return each("swiglu", stream, l.rows * l.columns / kVector<S>, [=] __device__(std::int64_t i) {
      const Place at = place_of<kVector<S>>(l, i);
      store(y + at.dense,
            mapped<S>([](C g, C u) { return gated(g, u); }, load(gate + at.in), load(up + at.in)));
    });
  each("swiglu", stream, l.rows * l.columns, [=] __device__(std::int64_t i) {
    const Place at = place_of<1>(l, i);
    y[at.dense] = narrow<S>(gated<C>(wide(gate[at.in]), wide(up[at.in])));
  });
}

template <class S>
void swiglu_backward_as(ops::SwigluBackwardCall& c) {
  using C = Compute<S>;
  const ops::SwigluLayout l = c.layout;
  const S* const gate = in<S>(c.gate);
  const S* const up = in<S>(c.up);
  const S* const dy = in<S>(c.dy);
  S* const dgate = out<S>(c.dgate);
  S* const dup = out<S>(c.dup);
  cudaStream_t const stream = stream_of(c.dgate.device());
  if (in_vectors<S>(l) && aligned(gate) && aligned(up) && aligned(dy) && aligned(dgate) &&
      aligned(dup))
    return each("swiglu, backward", stream, l.rows * l.columns / kVector<S>,
                [=] __device__(std::int64_t i) {
                  const Place at = place_of<kVector<S>>(l, i);
                  const Values<S> g = load(gate + at.in), u = load(up + at.in);
                  const Values<S> d = load(dy + at.dense);
                  store(dgate + at.in,
                        mapped<S>([](C a, C b, C e) { return gate_gradient(a, b, e); }, g, u, d));
                  store(dup + at.in, mapped<S>([](C a, C e) { return up_gradient(a, e); }, g, d));
                });
  each("swiglu, backward", stream, l.rows * l.columns, [=] __device__(std::int64_t i) {
    const Place at = place_of<1>(l, i);
    const C g = wide(gate[at.in]), u = wide(up[at.in]), d = wide(dy[at.dense]);
    dgate[at.in] = narrow<S>(gate_gradient(g, u, d));
    dup[at.in] = narrow<S>(up_gradient(g, d));
  });
}

void run_swiglu(ops::SwigluCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { swiglu_as<decltype(s)>(c); });
}

void run_swiglu_backward(ops::SwigluBackwardCall& c) {
  for_storage(c.dy.dtype(), [&](auto s) { swiglu_backward_as<decltype(s)>(c); });
}

}  // namespace

void add_swiglu_routines() {
  add<ops::SwigluCall>({run_swiglu});
  add<ops::SwigluBackwardCall>({run_swiglu_backward});
}

}  // namespace heddle::cuda
