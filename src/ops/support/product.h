// A matrix product as ops ask for it, on any device.
#pragma once

#include "backend/routine.h"
#include "heddle/activation.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// c = a · b, with this on the way of every sum to memory:
//   sum -> + bias[n] -> activation -> · factor -> + residual
// Undefined tensors are left out.
struct Product {
  Tensor a;  // [M, K] in any layout
  Tensor b;  // [K, N] in any layout; rounded to a's type where it has another
  Tensor c;  // M · N elements, contiguous
  // b is a weight, or a view of one: a device may keep it in a form of its own until it changes.
  bool of_weight = false;
  Activation activation = Activation::none;
  Tensor bias;  // [N] in the type that sums are made in
  // As c: written, for RowSums to have the slope from: activation'(sum + bias), or the sum itself,
  // whichever costs the device less.
  Tensor derivative;
  Tensor factor;    // as c; where multiplies_on_the_way() says so
  Tensor residual;  // as c, and may be c itself: then c grows by the product
  // b, and the bias, as the device's products read them, or room for b: what its plan makes.
  Tensor prepared, prepared_bias;

  std::int64_t rows() const { return a.size(0); }
  std::int64_t inner() const { return a.size(1); }
  std::int64_t columns() const { return b.size(1); }

  Cost cost() const {
    const auto size = [](std::int64_t n) { return static_cast<double>(n); };
    const double passes = 1 + (derivative.defined() ? 1 : 0) + (factor.defined() ? 1 : 0) +
                          (residual.defined() ? 1 : 0);
    return {2 * size(rows()) * size(columns()) * size(inner()),
            backend::bytes_of(a) + backend::bytes_of(of_weight ? prepared : b) +
                passes * backend::bytes_of(c)};
  }
};

}  // namespace heddle::ops
