// The calls that the losses of rows make to a device.
#pragma once

#include <algorithm>

#include "backend/routine.h"
#include "ops/linear_cross_entropy/loss_rows.h"

namespace heddle::ops {

// Losses of given rows.
struct CrossEntropyCall {
  static constexpr const char* kName = "cross_entropy";
  const LossRows& rows;
  bool log_probs;         // z are log-probabilities, not logits
  const Tensor& z;        // [..., V], contiguous
  Tensor& loss;           // one number, or one for each target
  Tensor workspace = {};  // its layout is known to the device's plan only

  const Tensor& output() const { return loss; }
  Cost cost() const { return {4 * backend::count_of(z), backend::bytes_of(z)}; }
};

struct CrossEntropyBackwardCall {
  static constexpr const char* kName = "cross_entropy, backward";
  const LossRows& rows;
  bool log_probs;
  const Tensor& z;
  const Tensor& dloss;  // as loss, contiguous
  Tensor& dz;           // as z
  Tensor workspace = {};

  const Tensor& output() const { return dz; }
  Cost cost() const { return {6 * backend::count_of(dz), 2 * backend::bytes_of(dz)}; }
};

// Losses of rows that a classifier makes, and their gradients while a row's logits are in memory.
// Undefined outputs are not wanted.
struct LinearCrossEntropyCall {
  static constexpr const char* kName = "linear_cross_entropy";
  const LossRows& rows;
  const Tensor& x;        // [T, K]
  const Tensor& weight;   // [V, K]
  const Tensor& bias;     // [V], or undefined
  const Tensor& dlosses;  // [T]: the losses' own gradients; undefined: 1 for all of them
  Tensor& loss;           // one number, or one for each target
  Tensor& dx;             // [T, K] in x's type
  Tensor& dw;             // [V, K] and [V] in the type that sums are made in
  Tensor& dbias;
  // Workspace from the device's plan: the logits of the rows of one chunk [.., V], and the rest.
  Tensor logits = {}, dlogits = {}, losses = {};
  Tensor prepared = {}, prepared_back = {}, prepared_x = {};
  Tensor terms = {}, partial = {}, room = {};

  bool wants_gradient() const { return dx.defined() || dw.defined() || dbias.defined(); }

  const Tensor& output() const { return x; }
  Cost cost() const {
    const auto count = static_cast<double>(x.size(0));
    const double products = 1 + (dx.defined() ? 1 : 0) + (dw.defined() ? 1 : 0);
    const double times = count / static_cast<double>(std::max<std::int64_t>(logits.size(0), 1));
    return {products * 2 * count * backend::count_of(weight),
            products * (backend::bytes_of(x) +
                        times * (backend::bytes_of(weight) + backend::bytes_of(logits)))};
  }
};

// x *= factor, in place.
struct RescaleCall {
  static constexpr const char* kName = "linear_cross_entropy, backward";
  const Tensor& factor;  // one number; 1 is what a loss usually gets
  Tensor& x;

  const Tensor& output() const { return x; }
  Cost cost() const { return {backend::count_of(x), 2 * backend::bytes_of(x)}; }
};

}  // namespace heddle::ops
