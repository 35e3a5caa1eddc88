#include "ops/dropout/dropout.h"

#include <cmath>
#include <string>

#include "ops/dropout/dropout.kernels.h"
#include "ops/support/op.h"
#include "ops/support/stream.h"

namespace heddle::ops {

namespace {

// mask / (1 - p) · input
Tensor masked(const Tensor& input, double p, const RandomKey& key) {
  const Tensor x = dense(input);
  if (p == 1) return Tensor::zeros(x.shape(), x.dtype(), x.device());
  Tensor y = empty_like(x);
  // Below 2^32, because p < 1 is at most 1 - 2^-53 and floor() rounds down.
  const double threshold = std::floor(p * 0x1p32);
  if (launch(y, {count_of(y), 2 * bytes_of(y)}))
    kernels<cpu::DropoutKernels>().forward({x.dtype(), worth_streaming(y), x.elements(),
                                            static_cast<std::uint32_t>(threshold), 1 / (1 - p), key,
                                            x.raw(), y.mutable_raw()});
  return y;
}

}  // namespace

// dx = dy · mask / (1 - p), the mask from the same key
Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  check_compute({"dropout", "x", x});
  check_condition(p >= 0 && p <= 1, "dropout", "p", "a probability in [0, 1]", std::to_string(p));
  if (p == 0) return x;
  Tensor y = masked(x, p, key);
  if (tracked({&x}))
    record("dropout", {&x}, {&y},
           [p, key](VjpContext& c) { c.add(0, masked(c.cotangent(), p, key)); });
  return y;
}

}  // namespace heddle::ops
