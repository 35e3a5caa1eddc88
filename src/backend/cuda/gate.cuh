// Gated units, element by element.
#pragma once

#include "backend/cuda/activation.cuh"
#include "heddle/gate.h"

namespace heddle::cuda {

__device__ inline Activation activation_of(Gate kind) {
  if (kind == Gate::gelu) return Activation::gelu;
  return kind == Gate::gelu_tanh ? Activation::gelu_tanh : Activation::silu;
}

template <class C>
__device__ C gated(Gate kind, C limit, C gate, C up) {
  if (kind != Gate::clamped) return activated(activation_of(kind), gate).value * up;
  const C g = gate > limit ? limit : gate;
  const C u = up > limit ? limit : up < -limit ? -limit : up;
  return g * sigmoid(C{kQuickGelu} * g) * (u + C{1});
}

}  // namespace heddle::cuda
