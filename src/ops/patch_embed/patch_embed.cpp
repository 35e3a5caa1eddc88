#include "ops/patch_embed/patch_embed.h"

#include <array>
#include <string>

#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/support/op.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

void check_divides(const Tensor& images, const Tensor& weight, int dim) {
  const std::int64_t size = images.size(dim), patch = weight.size(dim);
  if (patch < 1 || size % patch != 0)
    fail(ErrorCode::shape_mismatch, "patch_embed",
         "argument images is not a whole number of patches",
         "a multiple of " + std::to_string(patch) + " in dimension " + std::to_string(dim),
         images.describe());
}

void check_arguments(const Tensor& images, const Tensor& weight, const Tensor& bias) {
  check_compute({"patch_embed", "images", images});
  check_rank({"patch_embed", "images", images}, 4);
  check_rank({"patch_embed", "weight", weight}, 4);
  check_same_device({"patch_embed", "weight", weight}, images);
  const bool narrow = images.dtype() != DType::f64 && weight.dtype() == DType::bf16;
  if (!narrow) check_dtype({"patch_embed", "weight", weight}, parameter_dtype(images));
  if (weight.size(1) != images.size(1))
    fail(ErrorCode::shape_mismatch, "patch_embed",
         "argument weight has other channels than images, " + images.describe(),
         "[D, " + std::to_string(images.size(1)) + ", P, Q]", weight.describe());
  check_divides(images, weight, 2);
  check_divides(images, weight, 3);
  if (bias.defined()) check_parameter({"patch_embed", "bias", bias}, images, {weight.size(0)});
}

}  // namespace

// Made of ops that have their gradients: patches do not overlap, so that the rearrangement is a
// permutation.
Tensor patch_embed(const Tensor& images, const Tensor& weight, const Tensor& bias) {
  if (is_half(images)) return to_half(patch_embed(wide(images), weight, bias));
  check_arguments(images, weight, bias);
  const std::int64_t batch = images.size(0), channels = images.size(1);
  const std::int64_t p = weight.size(2), q = weight.size(3);
  const std::int64_t down = images.size(2) / p, across = images.size(3) / q;
  const std::int64_t width = channels * p * q;
  const Tensor cut = reshape(images, {batch, channels, down, p, across, q});
  const std::array<int, 6> order = {0, 2, 4, 1, 3, 5};  // [B, H/P, W/Q, C, P, Q]
  const Tensor patches = reshape(permute(cut, order), {batch, down * across, width});
  return linear(patches, reshape(weight, {weight.size(0), width}), bias);
}

}  // namespace heddle::ops
