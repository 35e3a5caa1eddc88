#include "ops/adamw/adamw.h"

#include <cmath>
#include <string>

#include "ops/adamw/adamw.kernels.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

void check_number(const char* name, bool ok, const char* expected, double got) {
  check_condition(ok && std::isfinite(got), "adamw", name, expected, std::to_string(got));
}

void check_options(const AdamWOptions& o) {
  check_number("lr", o.lr >= 0, "0 or more", o.lr);
  check_number("beta1", o.beta1 >= 0 && o.beta1 < 1, "a number in [0, 1)", o.beta1);
  check_number("beta2", o.beta2 >= 0 && o.beta2 < 1, "a number in [0, 1)", o.beta2);
  check_number("eps", o.eps >= 0, "0 or more", o.eps);
  check_number("weight_decay", o.weight_decay >= 0, "0 or more", o.weight_decay);
  check_number("grad_scale", true, "a finite number", o.grad_scale);
  check_condition(o.step >= 1, "adamw", "step", "1 or more", std::to_string(o.step));
}

}  // namespace

void adamw(Tensor& weight, const Tensor& gradient, Tensor& m, Tensor& v,
           const AdamWOptions& options) {
  check_options(options);
  check_in_place({"adamw", "weight", weight});
  if (weight.dtype() == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "adamw", "argument weight", "f32 or f64", weight.describe());
  check_like({"adamw", "grad", gradient}, weight);
  check_like({"adamw", "m", m}, weight);
  check_in_place({"adamw", "m", m});
  check_like({"adamw", "v", v}, weight);
  check_in_place({"adamw", "v", v});
  const Tensor grad = dense(gradient);
  if (!launch(weight, {12 * count_of(weight), 7 * bytes_of(weight)})) return;
  const auto step = static_cast<double>(options.step);
  cpu::AdamWArgs args;
  args.dtype = weight.dtype();
  args.count = weight.elements();
  args.grad_scale = options.grad_scale;
  args.decay = 1 - options.lr * options.weight_decay;
  args.beta1 = options.beta1;
  args.beta2 = options.beta2;
  args.step_size = options.lr / (1 - std::pow(options.beta1, step));
  args.inverse_correction = 1 / std::sqrt(1 - std::pow(options.beta2, step));
  args.eps = options.eps;
  args.grad = grad.raw();
  args.weight = weight.mutable_raw();
  args.m = m.mutable_raw();
  args.v = v.mutable_raw();
  kernels<cpu::AdamwKernels>().step(args);
}

}  // namespace heddle::ops
