#include "ops/adamw/adamw.h"

#include <cmath>
#include <string>
#include <vector>

#include "ops/adamw/adamw.call.h"
#include "ops/binary/binary.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/copy/copy.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

void check_options(const AdamWOptions& o) {
  check_number("adamw", "lr", o.lr >= 0, "0 or more", o.lr);
  check_number("adamw", "beta1", o.beta1 >= 0 && o.beta1 < 1, "a number in [0, 1)", o.beta1);
  check_number("adamw", "beta2", o.beta2 >= 0 && o.beta2 < 1, "a number in [0, 1)", o.beta2);
  check_number("adamw", "eps", o.eps >= 0, "0 or more", o.eps);
  check_number("adamw", "weight_decay", o.weight_decay >= 0, "0 or more", o.weight_decay);
  check_condition(o.step >= 1, "adamw", "step", "1 or more", std::to_string(o.step));
}

void check_tensors(const AdamWParameter& p, const AdamWParameter& first) {
  check_number("adamw", "weight_decay", p.weight_decay >= 0, "0 or more", p.weight_decay);
  check_in_place({"adamw", "weight", p.weight});
  if (p.weight.dtype() == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "adamw", "argument weight", "f32 or f64", p.weight.describe());
  check_same_device({"adamw", "weight", p.weight}, first.weight);
  check_like({"adamw", "grad", p.grad}, p.weight);
  check_like({"adamw", "m", p.m}, p.weight);
  check_in_place({"adamw", "m", p.m});
  check_like({"adamw", "v", p.v}, p.weight);
  check_in_place({"adamw", "v", p.v});
}

}  // namespace

void adamw(std::span<AdamWParameter> parameters, const AdamWOptions& options) {
  check_options(options);
  if (parameters.empty()) return;
  for (const AdamWParameter& p : parameters) check_tensors(p, parameters.front());
  check_grad_scale({"adamw", "grad_scale", options.grad_scale}, parameters.front().weight);
  if (!has_routine<AdamWCall>(parameters.front().weight)) {
    for (AdamWParameter& p : parameters) reference::adamw(p, options);
    return;
  }
  std::vector<Tensor> grads;
  grads.reserve(parameters.size());
  for (const AdamWParameter& p : parameters) grads.push_back(dense(p.grad));
  launch(AdamWCall{options, parameters, grads});
}

void adamw(Tensor& weight, const Tensor& grad, Tensor& m, Tensor& v, const AdamWOptions& options) {
  AdamWParameter one{weight, grad, m, v, options.weight_decay};
  adamw(std::span(&one, 1), options);
}

namespace reference {

void adamw(AdamWParameter& p, const AdamWOptions& o) {
  const auto step = static_cast<double>(o.step);
  const Tensor& factor = o.grad_scale;
  const Tensor g = factor.defined() ? mul(p.grad, cast(factor, p.grad.dtype())) : p.grad;
  const Tensor m = add(p.m, scale(sub(g, p.m), 1 - o.beta1));
  const Tensor v = add(scale(p.v, o.beta2), scale(square(g), 1 - o.beta2));
  const Tensor root = scale(sqrt(v), 1 / std::sqrt(1 - std::pow(o.beta2, step)));
  const Tensor move = scale(div(m, add(root, o.eps)), o.lr / (1 - std::pow(o.beta1, step)));
  update_into(p.weight, sub(scale(p.weight, 1 - o.lr * p.weight_decay), move), factor);
  update_into(p.m, m, factor);
  update_into(p.v, v, factor);
}

}  // namespace reference
}  // namespace heddle::ops
