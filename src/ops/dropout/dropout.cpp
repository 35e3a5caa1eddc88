#include "ops/dropout/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/copy/copy.h"
#include "ops/dropout/dropout.call.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// mask / (1 - q) · input, q = threshold / 2^16
Tensor masked(const Tensor& input, double p, const RandomKey& key) {
  const Tensor x = dense(input);
  if (p == 1) return Tensor::zeros(x.shape(), x.dtype(), x.device());
  Tensor y = empty_like(x);
  constexpr double kNumbers = 0x1p16;
  const double threshold = std::clamp(std::round(p * kNumbers), 1.0, kNumbers - 1);
  launch(DropoutCall{static_cast<std::uint32_t>(threshold), kNumbers / (kNumbers - threshold), key,
                     x, y});
  return y;
}

}  // namespace

// dx = dy · mask / (1 - q), the mask from the same key
Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  if (is_half(x)) return p == 0 ? x : to_half(dropout(wide(x), p, key));
  check_compute({"dropout", "x", x});
  check_number("dropout", "p", p >= 0 && p <= 1, "a probability in [0, 1]", p);
  if (p == 0) return x;
  Tensor y = masked(x, p, key);
  if (tracked({&x}))
    record("dropout", {&x}, {&y},
           [p, key](VjpContext& c) { c.add(0, masked(c.cotangent(), p, key)); });
  return y;
}

}  // namespace heddle::ops
