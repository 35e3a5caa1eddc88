#include "ops/dropout/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/dropout/dropout.call.h"
#include "ops/support/host.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// q = threshold / 2^16, and 1 / (1 - q).
struct Dropped {
  std::uint32_t threshold;
  double scale;
};

Dropped dropped(double p) {
  constexpr double kNumbers = 0x1p16;
  const double threshold = std::clamp(std::round(p * kNumbers), 1.0, kNumbers - 1);
  return {static_cast<std::uint32_t>(threshold), kNumbers / (kNumbers - threshold)};
}

// mask / (1 - q) · input
Tensor masked(const Tensor& input, double p, const RandomKey& key) {
  const Tensor x = dense(input);
  if (p == 1) return Tensor::zeros(x.shape(), x.dtype(), x.device());
  Tensor y = empty_like(x);
  const Dropped d = dropped(p);
  launch(DropoutCall{.threshold = d.threshold, .scale = d.scale, .key = key, .x = x, .y = y});
  return y;
}

}  // namespace

// dx = dy · mask / (1 - q), the mask from the same key
Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  if (is_half(x)) return p == 0 ? x : to_half(dropout(wide(x), p, key));
  check_compute({"dropout", "x", x});
  check_number("dropout", "p", p >= 0 && p <= 1, "a probability in [0, 1]", p);
  if (p == 0) return x;
  if (!has_routine<DropoutCall>(x))
    return cast(reference::dropout(cast(x, parameter_dtype(x)), p, key), x.dtype());
  Tensor y = masked(x, p, key);
  if (tracked({&x}))
    record("dropout", {&x}, {&y},
           [p, key](VjpContext& c) { c.add(0, masked(c.cotangent(), p, key)); });
  return y;
}

namespace reference {

Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  if (p == 0) return x;
  const std::int64_t count = x.elements();
  std::vector<double> mask(static_cast<std::size_t>(count), 0.0);
  const Dropped d = dropped(p);
  for (std::int64_t i = 0; i < count && p < 1; ++i) {
    const std::uint32_t word =
        philox(key, static_cast<std::uint64_t>(i / 8))[static_cast<std::size_t>(i / 2 % 4)];
    const std::uint32_t number = i % 2 == 0 ? word & 0xffffu : word >> 16;
    mask[static_cast<std::size_t>(i)] = number < d.threshold ? 0 : d.scale;
  }
  return mul(x, cast(from_host(x.shape(), mask, x.device()), x.dtype()));
}

}  // namespace reference
}  // namespace heddle::ops
