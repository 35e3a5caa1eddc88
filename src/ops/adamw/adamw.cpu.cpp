// adamw on the CPU.
#include <cmath>
#include <cstddef>
#include <vector>

#include "backend/cpu/kernels.h"
#include "ops/adamw/adamw.call.h"
#include "ops/adamw/adamw.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/update.h"

namespace heddle::cpu {

namespace {

// Arguments common to all parameters.
AdamWArgs common_args(const ops::AdamWOptions& options, double scale) {
  const auto step = static_cast<double>(options.step);
  AdamWArgs args;
  args.grad_scale = scale;
  args.beta1 = options.beta1;
  args.beta2 = options.beta2;
  args.step_size = options.lr / (1 - std::pow(options.beta1, step));
  args.inverse_correction = 1 / std::sqrt(1 - std::pow(options.beta2, step));
  args.eps = options.eps;
  return args;
}

AdamWArgs args_of(ops::AdamWParameter& p, const Tensor& grad, double lr, const AdamWArgs& common) {
  AdamWArgs args = common;
  args.dtype = p.weight.dtype();
  args.count = p.weight.elements();
  args.decay = 1 - lr * p.weight_decay;
  args.grad = grad.raw();
  args.weight = p.weight.mutable_raw();
  args.m = p.m.mutable_raw();
  args.v = p.v.mutable_raw();
  return args;
}

// The elements [begin, end) of all four arrays.
AdamWArgs part_of(const AdamWArgs& whole, std::int64_t begin, std::int64_t end) {
  const auto offset = static_cast<std::size_t>(begin) * size_of(whole.dtype);
  AdamWArgs part = whole;
  part.count = end - begin;
  part.grad = static_cast<const std::byte*>(whole.grad) + offset;
  part.weight = static_cast<std::byte*>(whole.weight) + offset;
  part.m = static_cast<std::byte*>(whole.m) + offset;
  part.v = static_cast<std::byte*>(whole.v) + offset;
  return part;
}

void run_adamw(ops::AdamWCall& c) {
  const double scale = scale_of(c.options.grad_scale);
  if (!std::isfinite(scale)) return;
  const AdamWArgs common = common_args(c.options, scale);
  std::vector<Tensor> weights;
  std::vector<AdamWArgs> args;
  weights.reserve(c.parameters.size());
  args.reserve(c.parameters.size());
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    weights.push_back(c.parameters[i].weight);
    args.push_back(args_of(c.parameters[i], c.grads[i], c.options.lr, common));
  }
  const auto& kernel = kernels<AdamwKernels>();
  update_weights(weights, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    kernel.step(part_of(args[i], begin, end));
  });
}

}  // namespace

void add_adamw_routines() { add<ops::AdamWCall>({run_adamw}); }

}  // namespace heddle::cpu
