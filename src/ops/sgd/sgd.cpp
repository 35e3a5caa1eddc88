#include "ops/sgd/sgd.h"

#include <cmath>
#include <string>

#include "ops/sgd/sgd.call.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

void check_options(const SgdOptions& o) {
  check_number("sgd", "lr", o.lr >= 0, "0 or more", o.lr);
  check_number("sgd", "momentum", o.momentum >= 0, "0 or more", o.momentum);
  check_number("sgd", "weight_decay", o.weight_decay >= 0, "0 or more", o.weight_decay);
  check_number("sgd", "grad_scale", true, "a finite number", o.grad_scale);
  check_condition(!o.nesterov || o.momentum > 0, "sgd", "nesterov", "a momentum above 0 beside it",
                  "momentum 0");
}

}  // namespace

void sgd(Tensor& weight, const Tensor& gradient, Tensor& buffer, const SgdOptions& options) {
  check_options(options);
  check_in_place({"sgd", "weight", weight});
  if (weight.dtype() == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "sgd", "argument weight", "f32 or f64", weight.describe());
  check_like({"sgd", "grad", gradient}, weight);
  const bool momentum = options.momentum > 0;
  if (momentum) {
    check_like({"sgd", "buffer", buffer}, weight);
    check_in_place({"sgd", "buffer", buffer});
  } else {
    check_condition(!buffer.defined(), "sgd", "buffer", "an undefined tensor without momentum",
                    buffer.describe());
  }
  const Tensor grad = dense(gradient);
  launch(SgdCall{options, grad, weight, buffer});
}

}  // namespace heddle::ops
