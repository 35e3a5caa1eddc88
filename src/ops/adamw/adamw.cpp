#include "ops/adamw/adamw.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "backend/cpu/threads.h"
#include "ops/adamw/adamw.kernels.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/support/pieces.h"

namespace heddle::ops {

namespace {

void check_options(const AdamWOptions& o) {
  check_number("adamw", "lr", o.lr >= 0, "0 or more", o.lr);
  check_number("adamw", "beta1", o.beta1 >= 0 && o.beta1 < 1, "a number in [0, 1)", o.beta1);
  check_number("adamw", "beta2", o.beta2 >= 0 && o.beta2 < 1, "a number in [0, 1)", o.beta2);
  check_number("adamw", "eps", o.eps >= 0, "0 or more", o.eps);
  check_number("adamw", "weight_decay", o.weight_decay >= 0, "0 or more", o.weight_decay);
  check_number("adamw", "grad_scale", true, "a finite number", o.grad_scale);
  check_condition(o.step >= 1, "adamw", "step", "1 or more", std::to_string(o.step));
}

void check_tensors(const AdamWParameter& p) {
  check_number("adamw", "weight_decay", p.weight_decay >= 0, "0 or more", p.weight_decay);
  check_in_place({"adamw", "weight", p.weight});
  if (p.weight.dtype() == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "adamw", "argument weight", "f32 or f64", p.weight.describe());
  check_like({"adamw", "grad", p.grad}, p.weight);
  check_like({"adamw", "m", p.m}, p.weight);
  check_in_place({"adamw", "m", p.m});
  check_like({"adamw", "v", p.v}, p.weight);
  check_in_place({"adamw", "v", p.v});
}

// What all parameters have in common.
cpu::AdamWArgs common_args(const AdamWOptions& options) {
  const auto step = static_cast<double>(options.step);
  cpu::AdamWArgs args;
  args.grad_scale = options.grad_scale;
  args.beta1 = options.beta1;
  args.beta2 = options.beta2;
  args.step_size = options.lr / (1 - std::pow(options.beta1, step));
  args.inverse_correction = 1 / std::sqrt(1 - std::pow(options.beta2, step));
  args.eps = options.eps;
  return args;
}

cpu::AdamWArgs args_of(AdamWParameter& p, const Tensor& dense_grad, const AdamWOptions& options,
                       const cpu::AdamWArgs& common) {
  cpu::AdamWArgs args = common;
  args.dtype = p.weight.dtype();
  args.count = p.weight.elements();
  args.decay = 1 - options.lr * p.weight_decay;
  args.grad = dense_grad.raw();
  args.weight = p.weight.mutable_raw();
  args.m = p.m.mutable_raw();
  args.v = p.v.mutable_raw();
  return args;
}

// The elements [begin, end) of all four arrays.
cpu::AdamWArgs part_of(const cpu::AdamWArgs& whole, const Piece& piece) {
  const auto offset = static_cast<std::size_t>(piece.begin) * size_of(whole.dtype);
  cpu::AdamWArgs part = whole;
  part.count = piece.end - piece.begin;
  part.grad = static_cast<const std::byte*>(whole.grad) + offset;
  part.weight = static_cast<std::byte*>(whole.weight) + offset;
  part.m = static_cast<std::byte*>(whole.m) + offset;
  part.v = static_cast<std::byte*>(whole.v) + offset;
  return part;
}

}  // namespace

void adamw(std::span<AdamWParameter> parameters, const AdamWOptions& options,
           const std::function<void(std::size_t)>& behind) {
  constexpr std::int64_t kElements = 8192;  // of a piece of work: 128 KiB of four arrays
  check_options(options);
  for (const AdamWParameter& p : parameters) check_tensors(p);
  std::vector<cpu::AdamWArgs> args(parameters.size());
  std::vector<std::int64_t> counts(parameters.size());
  std::vector<std::atomic<std::int64_t>> left(parameters.size());  // elements to be updated
  std::vector<Tensor> grads;  // dense ones, kept until they are read
  const cpu::AdamWArgs common = common_args(options);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    AdamWParameter& p = parameters[i];
    grads.push_back(dense(p.grad));
    if (!launch(p.weight, {12 * count_of(p.weight), 7 * bytes_of(p.weight)})) continue;
    args[i] = args_of(p, grads.back(), options, common);
    left[i] = counts[i] = args[i].count;
  }
  const Pieces pieces(counts, kElements);
  const auto& kernel = kernels<cpu::AdamwKernels>();
  cpu::parallel_chunks(pieces.chunks(), [&](std::int64_t chunk) {
    for (const Piece& piece : pieces.of(chunk)) {
      kernel.step(part_of(args[piece.array], piece));
      const std::int64_t done = piece.end - piece.begin;
      if (left[piece.array].fetch_sub(done, std::memory_order_acq_rel) == done) behind(piece.array);
    }
  });
}

void adamw(std::span<AdamWParameter> parameters, const AdamWOptions& options) {
  adamw(parameters, options, [](std::size_t) {});
}

void adamw(Tensor& weight, const Tensor& grad, Tensor& m, Tensor& v, const AdamWOptions& options) {
  AdamWParameter one{weight, grad, m, v, options.weight_decay};
  adamw(std::span(&one, 1), options);
}

}  // namespace heddle::ops
