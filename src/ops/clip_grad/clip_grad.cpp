#include "ops/clip_grad/clip_grad.h"

#include <cmath>
#include <string>

#include "ops/clip_grad/clip_grad.kernels.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"

namespace heddle::ops {

double global_norm(std::span<const Tensor> grads) {
  double total = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const std::string name = "grads[" + std::to_string(i) + "]";
    check_compute({"global_norm", name.c_str(), grads[i]});
    const Tensor x = dense(grads[i]);
    const std::int64_t blocks = cpu::norm_blocks(x.elements());
    const PurposeScope scope(Purpose::workspace);
    Tensor partial = Tensor::empty({blocks}, DType::f64, x.device());
    if (!launch(partial, {2 * count_of(x), bytes_of(x)})) continue;
    auto* sums = partial.mutable_data<double>();
    kernels<cpu::ClipGradKernels>().sum_squares({x.dtype(), x.elements(), x.raw(), sums});
    for (std::int64_t b = 0; b < blocks; ++b) total += sums[b];
  }
  return std::sqrt(total);
}

double clip_scale(double norm, double max_norm) {
  check_condition(max_norm > 0, "clip_scale", "max_norm", "a number above 0",
                  std::to_string(max_norm));
  check_condition(!(norm < 0), "clip_scale", "norm", "0 or more", std::to_string(norm));
  const double scale = max_norm / (norm + 1e-6);
  return scale > 1 ? 1 : scale;
}

void scale_into(Tensor& x, double factor) {
  check_in_place({"scale_into", "x", x});
  if (!launch(x, {count_of(x), 2 * bytes_of(x)})) return;
  kernels<cpu::ClipGradKernels>().scale({x.dtype(), x.elements(), factor, x.mutable_raw()});
}

}  // namespace heddle::ops
