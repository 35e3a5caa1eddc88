#include "ops/sgd/sgd.h"

#include <vector>

#include "ops/binary/binary.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/copy/copy.h"
#include "ops/sgd/sgd.call.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

void check_options(const SgdOptions& o) {
  check_number("sgd", "lr", o.lr >= 0, "0 or more", o.lr);
  check_number("sgd", "momentum", o.momentum >= 0, "0 or more", o.momentum);
  check_number("sgd", "weight_decay", o.weight_decay >= 0, "0 or more", o.weight_decay);
  check_condition(!o.nesterov || o.momentum > 0, "sgd", "nesterov", "a momentum above 0 beside it",
                  "momentum 0");
}

void check_tensors(const SgdParameter& p, const SgdParameter& first, bool momentum) {
  check_number("sgd", "weight_decay", p.weight_decay >= 0, "0 or more", p.weight_decay);
  check_in_place({"sgd", "weight", p.weight});
  if (p.weight.dtype() == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "sgd", "argument weight", "f32 or f64", p.weight.describe());
  check_same_device({"sgd", "weight", p.weight}, first.weight);
  check_like({"sgd", "grad", p.grad}, p.weight);
  if (momentum) {
    check_like({"sgd", "buffer", p.buffer}, p.weight);
    check_in_place({"sgd", "buffer", p.buffer});
  } else {
    check_condition(!p.buffer.defined(), "sgd", "buffer", "an undefined tensor without momentum",
                    p.buffer.describe());
  }
}

}  // namespace

void sgd(std::span<SgdParameter> parameters, const SgdOptions& options) {
  check_options(options);
  if (parameters.empty()) return;
  for (const SgdParameter& p : parameters)
    check_tensors(p, parameters.front(), options.momentum > 0);
  check_grad_scale({"sgd", "grad_scale", options.grad_scale}, parameters.front().weight);
  if (!has_routine<SgdCall>(parameters.front().weight)) {
    for (SgdParameter& p : parameters) reference::sgd(p, options);
    return;
  }
  std::vector<Tensor> grads;
  grads.reserve(parameters.size());
  for (const SgdParameter& p : parameters) grads.push_back(dense(p.grad));
  launch(SgdCall{options, parameters, grads});
}

void sgd(Tensor& weight, const Tensor& grad, Tensor& buffer, const SgdOptions& options) {
  SgdParameter one{weight, grad, buffer, options.weight_decay};
  sgd(std::span(&one, 1), options);
}

namespace reference {

void sgd(SgdParameter& p, const SgdOptions& o) {
  const Tensor& factor = o.grad_scale;
  const Tensor scaled = factor.defined() ? mul(p.grad, cast(factor, p.grad.dtype())) : p.grad;
  const Tensor g = add(scaled, scale(p.weight, p.weight_decay));
  Tensor direction = g;
  if (p.buffer.defined()) {
    const Tensor b = add(scale(p.buffer, o.momentum), g);
    direction = o.nesterov ? add(g, scale(b, o.momentum)) : b;
    update_into(p.buffer, b, factor);
  }
  update_into(p.weight, sub(p.weight, scale(direction, o.lr)), factor);
}

}  // namespace reference
}  // namespace heddle::ops
