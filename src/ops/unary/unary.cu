// unary on CUDA.
#include <cmath>

#include "backend/cuda/activation.cuh"
#include "backend/cuda/vectors.cuh"
#include "heddle/gate.h"
#include "ops/unary/unary.call.h"

namespace heddle::cuda {

namespace {

using ops::Unary;

template <class C>
__device__ C value(Unary kind, C x, C p) {
  switch (kind) {
    case Unary::neg: return -x;
    case Unary::exp: return std::exp(x);
    case Unary::log: return std::log(x);
    case Unary::sqrt: return std::sqrt(x);
    case Unary::rsqrt: return C{1} / std::sqrt(x);
    case Unary::square: return x * x;
    case Unary::scale: return x * p;
    case Unary::add_number: return x + p;
    case Unary::relu: return x > C{0} || x != x ? x : C{0};
    case Unary::gelu: return x * normal_cdf(x);
    case Unary::gelu_tanh: return x * gelu_tanh_gate(x);
    case Unary::silu: return x * sigmoid(x);
    case Unary::quick_gelu: return x * sigmoid(C{kQuickGelu} * x);
    case Unary::tanh: return std::tanh(x);
    case Unary::sigmoid: return sigmoid(x);
    case Unary::softcap: return p * std::tanh(x / p);
  }
  return x;
}

// In the output where ops::derivative_from_output() says so, else in the input.
template <class C>
__device__ C derivative(Unary kind, C s, C p) {
  switch (kind) {
    case Unary::neg: return C{-1};
    case Unary::exp: return s;
    case Unary::log: return C{1} / s;
    case Unary::sqrt: return C{0.5} / s;
    case Unary::rsqrt: return C{-0.5} * s * s * s;
    case Unary::square: return C{2} * s;
    case Unary::scale: return p;
    case Unary::add_number: return C{1};
    case Unary::relu: return s > C{0} ? C{1} : C{0};
    case Unary::gelu: return normal_cdf(s) + s * normal_density(s);
    case Unary::gelu_tanh: return gelu_tanh_slope(s, gelu_tanh_gate(s));
    case Unary::silu: return silu_slope(s, sigmoid(s));
    case Unary::quick_gelu: return silu_slope(C{kQuickGelu} * s, sigmoid(C{kQuickGelu} * s));
    case Unary::tanh: return C{1} - s * s;
    case Unary::sigmoid: return s * (C{1} - s);
    case Unary::softcap: return C{1} - s / p * (s / p);
  }
  return C{1};
}

template <class S>
void unary_as(ops::UnaryCall& c) {
  using C = Compute<S>;
  const S* const x = in<S>(c.x);
  S* const y = out<S>(c.y);
  const Unary kind = c.kind;
  const C p = static_cast<C>(c.parameter);
  map(
      "unary", stream_of(c.y.device()), c.y.elements(),
      [=] __device__(C v) { return value<C>(kind, v, p); }, y, x);
}

template <class S>
void unary_backward_as(ops::UnaryBackwardCall& c) {
  using C = Compute<S>;
  const S* const saved = in<S>(c.saved);
  const S* const dy = in<S>(c.dy);
  S* const dx = out<S>(c.dx);
  const Unary kind = c.kind;
  const C p = static_cast<C>(c.parameter);
  map(
      "unary, backward", stream_of(c.dx.device()), c.dx.elements(),
      [=] __device__(C d, C v) { return d * derivative<C>(kind, v, p); }, dx, dy, saved);
}

void run_unary(ops::UnaryCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { unary_as<decltype(s)>(c); });
}

void run_unary_backward(ops::UnaryBackwardCall& c) {
  for_storage(c.dx.dtype(), [&](auto s) { unary_backward_as<decltype(s)>(c); });
}

}  // namespace

void add_unary_routines() {
  add<ops::UnaryCall>({run_unary});
  add<ops::UnaryBackwardCall>({run_unary_backward});
}

}  // namespace heddle::cuda
