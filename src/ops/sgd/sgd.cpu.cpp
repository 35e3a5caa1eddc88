// sgd on the CPU.
#include <cmath>
#include <cstddef>
#include <vector>

#include "backend/cpu/kernels.h"
#include "ops/sgd/sgd.call.h"
#include "ops/sgd/sgd.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/update.h"

namespace heddle::cpu {

namespace {

SgdArgs sgd_args(ops::SgdParameter& p, const Tensor& grad, const ops::SgdOptions& o, double scale) {
  SgdArgs args;
  args.dtype = p.weight.dtype();
  args.count = p.weight.elements();
  args.lr = o.lr;
  args.momentum = o.momentum;
  args.weight_decay = p.weight_decay;
  args.grad_scale = scale;
  args.nesterov = o.nesterov;
  args.grad = grad.raw();
  args.weight = p.weight.mutable_raw();
  args.buffer = raw_or_null(p.buffer);
  return args;
}

// The elements [begin, end) of all arrays.
SgdArgs sgd_part(const SgdArgs& whole, std::int64_t begin, std::int64_t end) {
  const auto offset = static_cast<std::size_t>(begin) * size_of(whole.dtype);
  SgdArgs part = whole;
  part.count = end - begin;
  part.grad = static_cast<const std::byte*>(whole.grad) + offset;
  part.weight = static_cast<std::byte*>(whole.weight) + offset;
  if (whole.buffer != nullptr) part.buffer = static_cast<std::byte*>(whole.buffer) + offset;
  return part;
}

void run_sgd(ops::SgdCall& c) {
  const double scale = scale_of(c.options.grad_scale);
  if (!std::isfinite(scale)) return;
  std::vector<Tensor> weights;
  std::vector<SgdArgs> args;
  weights.reserve(c.parameters.size());
  args.reserve(c.parameters.size());
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    weights.push_back(c.parameters[i].weight);
    args.push_back(sgd_args(c.parameters[i], c.grads[i], c.options, scale));
  }
  const auto& kernel = kernels<SgdKernels>();
  update_weights(weights, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    kernel.step(sgd_part(args[i], begin, end));
  });
}

}  // namespace

void add_sgd_routines() { add<ops::SgdCall>({run_sgd}); }

}  // namespace heddle::cpu
