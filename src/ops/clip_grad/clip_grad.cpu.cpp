// clip_grad on the CPU.
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/threads.h"
#include "ops/clip_grad/clip_grad.call.h"
#include "ops/clip_grad/clip_grad.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/pieces.h"

namespace heddle::cpu {

namespace {

const void* at(const Tensor& x, std::int64_t element) {
  return static_cast<const std::byte*>(x.raw()) +
         static_cast<std::size_t>(element) * size_of(x.dtype());
}

void plan_global_norm(ops::GlobalNormCall& c) {
  std::int64_t blocks = 0;
  for (const Tensor& x : c.grads) blocks += norm_blocks(x.elements());
  c.partial = workspace({blocks}, DType::f64, c.norm);
}

void run_global_norm(ops::GlobalNormCall& c) {
  std::vector<std::int64_t> counts, first_block;  // of each gradient, among all
  counts.reserve(c.grads.size());
  first_block.reserve(c.grads.size());
  std::int64_t blocks = 0;
  for (const Tensor& x : c.grads) {
    first_block.push_back(blocks);
    blocks += norm_blocks(x.elements());
    counts.push_back(x.elements());
  }
  double* const sums = c.partial.mutable_data<double>();
  const Pieces pieces(counts, kNormBlock);
  const auto& kernel = kernels<ClipGradKernels>();
  parallel_chunks(pieces.chunks(), [&](std::int64_t chunk) {
    for (const Piece& piece : pieces.of(chunk)) {
      const Tensor& x = c.grads[piece.array];
      double* const sum = sums + first_block[piece.array] + piece.begin / kNormBlock;
      kernel.sum_squares({x.dtype(), piece.end - piece.begin, at(x, piece.begin), sum});
    }
  });
  *c.norm.mutable_data<double>() = std::sqrt(std::accumulate(sums, sums + blocks, 0.0));
}

void run_clip_scale(ops::ClipScaleCall& c) {
  const double norm = c.norm.item();
  if (norm < 0)
    ops::check_condition(false, "clip_scale", "norm", "0 or more", std::to_string(norm));
  bool finite = std::isfinite(norm);
  for (const Tensor& loss : c.losses) finite = finite && std::isfinite(loss.item());
  const double scale = c.max_norm / (norm + 1e-6);
  *c.scale.mutable_data<double>() =
      finite ? (scale > 1 ? 1 : scale) : std::numeric_limits<double>::quiet_NaN();
}

void run_scale_into(ops::ScaleIntoCall& c) {
  kernels<ClipGradKernels>().scale({c.x.dtype(), c.x.elements(), c.factor, c.x.mutable_raw()});
}

}  // namespace

void add_clip_grad_routines() {
  add<ops::GlobalNormCall>({run_global_norm, plan_global_norm});
  add<ops::ClipScaleCall>({run_clip_scale});
  add<ops::ScaleIntoCall>({run_scale_into});
}

}  // namespace heddle::cpu
