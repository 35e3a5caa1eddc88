#include "ops/clip_grad/clip_grad.h"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/threads.h"
#include "ops/clip_grad/clip_grad.kernels.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/support/pieces.h"

namespace heddle::ops {

namespace {

const void* at(const Tensor& x, std::int64_t element) {
  return static_cast<const std::byte*>(x.raw()) +
         static_cast<std::size_t>(element) * size_of(x.dtype());
}

void check_gradient(std::span<const Tensor> grads, std::size_t i) {
  const Tensor& grad = grads[i];
  const bool right = grad.defined() && grad.dtype() == DType::f32;
  if (right && grad.device() == grads[0].device()) return;  // before a name is made for it
  const std::string name = "grads[" + std::to_string(i) + "]";
  check_compute({"global_norm", name.c_str(), grad});
  check_same_device({"global_norm", name.c_str(), grad}, grads[0]);
}

}  // namespace

double global_norm(std::span<const Tensor> grads) {
  std::vector<Tensor> dense_grads;
  std::vector<std::int64_t> counts, first_block;  // of each gradient, among all
  std::int64_t blocks = 0;
  const Device device = grads.empty() || !grads[0].defined() ? Device::meta : grads[0].device();
  for (std::size_t i = 0; i < grads.size(); ++i) {
    check_gradient(grads, i);
    const Tensor& x = dense_grads.emplace_back(dense(grads[i]));
    first_block.push_back(blocks);
    blocks += cpu::norm_blocks(x.elements());
    const bool computed = launch(x, {2 * count_of(x), bytes_of(x)});
    counts.push_back(computed ? x.elements() : 0);
  }
  const PurposeScope scope(Purpose::workspace);
  Tensor partial = Tensor::zeros({blocks}, DType::f64, device);
  if (device == Device::meta) return 0;
  double* const sums = partial.mutable_data<double>();
  const Pieces pieces(counts, cpu::kNormBlock);
  const auto& kernel = kernels<cpu::ClipGradKernels>();
  cpu::parallel_chunks(pieces.chunks(), [&](std::int64_t chunk) {
    for (const Piece& piece : pieces.of(chunk)) {
      const Tensor& x = dense_grads[piece.array];
      double* const sum = sums + first_block[piece.array] + piece.begin / cpu::kNormBlock;
      kernel.sum_squares({x.dtype(), piece.end - piece.begin, at(x, piece.begin), sum});
    }
  });
  return std::sqrt(std::accumulate(sums, sums + blocks, 0.0));
}

double clip_scale(double norm, double max_norm) {
  // Strings are made for errors alone.
  if (!(max_norm > 0))
    check_condition(false, "clip_scale", "max_norm", "a number above 0", std::to_string(max_norm));
  if (norm < 0) check_condition(false, "clip_scale", "norm", "0 or more", std::to_string(norm));
  const double scale = max_norm / (norm + 1e-6);
  return scale > 1 ? 1 : scale;
}

void scale_into(Tensor& x, double factor) {
  check_in_place({"scale_into", "x", x});
  if (!launch(x, {count_of(x), 2 * bytes_of(x)})) return;
  kernels<cpu::ClipGradKernels>().scale({x.dtype(), x.elements(), factor, x.mutable_raw()});
}

}  // namespace heddle::ops
