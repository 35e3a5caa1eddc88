// The calls that clip_grad makes to a device.
#pragma once

#include <span>

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// norm = √(Σ grads²), one number in f64. The gradients are contiguous and of any floating-point
// types.
struct GlobalNormCall {
  static constexpr const char* kName = "global_norm";
  static constexpr bool kOfTraining = true;
  std::span<const Tensor> grads;
  Tensor& norm;
  Tensor partial = {};  // workspace

  const Tensor& output() const { return norm; }
  Cost cost() const {
    Cost all;
    for (const Tensor& x : grads) {
      all.flops += 2 * count_of(x);
      all.bytes += bytes_of(x);
    }
    return all;
  }
};

// As clip_scale() says: norm and losses are one number each, scale is one in f64.
struct ClipScaleCall {
  static constexpr const char* kName = "clip_scale";
  static constexpr bool kOfTraining = true;
  const Tensor& norm;
  double max_norm;
  std::span<const Tensor> losses;
  Tensor& scale;

  const Tensor& output() const { return scale; }
  Cost cost() const { return {3, bytes_of(norm) + bytes_of(scale)}; }
};

// x = factor · x, contiguous.
struct ScaleIntoCall {
  static constexpr const char* kName = "scale_into";
  static constexpr bool kOfTraining = true;
  double factor;
  Tensor& x;

  const Tensor& output() const { return x; }
  Cost cost() const { return {count_of(x), 2 * bytes_of(x)}; }
};

}  // namespace heddle::ops
