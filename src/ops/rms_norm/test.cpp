#include <gtest/gtest.h>

#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm/rms_norm.kernels.h"
#include "ops/support/test_norm.h"

namespace heddle::harness::rms_norm_cases {
namespace {

constexpr double kEps = 1e-2;  // large enough for a wrong one to show

// 192: rows that are taken several at a time, and some that are left over.
const Shape kShapes[] = {{1},        {5, 1},   {7, 33},    {0, 5},
                         {2, 3, 67}, {5, 130}, {601, 131}, {301, 192}};

Case named(const std::string& name, const Shape& shape) {
  Case c;
  c.op = "rms_norm";
  c.name = name + to_string(shape);
  // Sums over a row, and over all rows for the gain.
  c.reduction = shape.back() + elements_of(shape) / shape.back();
  // A row of one element: in dx, 1 - x̂² cancels to eps / (x² + eps), which is small.
  if (shape.back() == 1) c.slack = 4;
  return c;
}

void add_plain(const Shape& shape) {
  Case c = named("rms_norm", shape);
  c.inputs = {act(shape), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::rms_norm(in[0], in[1], kEps)}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::rms_norm(in[0], in[1], kEps)};
  };
  add_case(c);
  c.name += " without gain";
  c.inputs = {act(shape)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::rms_norm(in[0], {}, kEps)}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::rms_norm(in[0], {}, kEps)};
  };
  add_case(c);
}

Case residual_case(const Shape& shape) {
  Case c = named("add_rms_norm", shape);
  c.inputs = {act(shape), act(shape), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    const auto r = ops::add_rms_norm(in[0], in[1], in[2], kEps);
    return Tensors{r.sum, r.y};
  };
  c.reference = [](std::span<const Tensor> in) {
    const auto r = ops::reference::add_rms_norm(in[0], in[1], in[2], kEps);
    return Tensors{r.sum, r.y};
  };
  // In bf16 the norm is that of the rounded sum.
  c.slack *= 2;
  return c;
}

// One of the two results is not used: no cotangent arrives for it.
void add_half_used(std::size_t which) {
  Case c = residual_case({9, 37});
  c.name += which == 0 ? " only the sum" : " only the norm";
  if (which == 0) c.inputs[2] = constant(c.inputs[2]);  // the gain has no gradient then
  c.run = [which, run = c.run](std::span<const Tensor> in) { return Tensors{run(in)[which]}; };
  c.reference = [which, reference = c.reference](std::span<const Tensor> in) {
    return Tensors{reference(in)[which]};
  };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : kShapes) {
    add_plain(shape);
    add_case(residual_case(shape));
  }
  add_half_used(0);
  add_half_used(1);
  add_norm_mutants<cpu::RmsNormKernels>("rms_norm");
  return true;
}();

TEST(rms_norm_kernels, StreamingChangesNothing) {
  expect_streaming_changes_nothing<cpu::RmsNormKernels>();
}

TEST(rms_norm_calls, WrongOnesAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor gain = Tensor::zeros({3});
  EXPECT_THROW(ops::rms_norm({}, gain, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({}), {}, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({2, 0}), {}, kEps), Error);
  EXPECT_THROW(ops::rms_norm(Tensor::zeros({2, 3}, DType::i32), gain, kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({4}), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({3}, DType::bf16), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, Tensor::zeros({3}, DType::f32, Device::meta), kEps), Error);
  EXPECT_THROW(ops::rms_norm(x, gain, -1), Error);
  EXPECT_THROW(ops::add_rms_norm(x, {}, gain, kEps), Error);
  EXPECT_THROW(ops::add_rms_norm(x, Tensor::zeros({3}), gain, kEps), Error);
  EXPECT_THROW(ops::add_rms_norm(x, Tensor::zeros({2, 3}, DType::f64), gain, kEps), Error);
}

}  // namespace
}  // namespace heddle::harness::rms_norm_cases
