#include <gtest/gtest.h>

#include "ops/layer_norm/layer_norm.h"
#include "ops/layer_norm/layer_norm.kernels.h"
#include "ops/support/test_norm.h"

namespace heddle::harness::layer_norm_cases {
namespace {

constexpr double kEps = 1e-2;  // large enough for a wrong one to show

// 192: rows that are taken several at a time, and some that are left over.
const Shape kShapes[] = {{1},        {5, 1},   {7, 33},    {0, 5},
                         {2, 3, 67}, {5, 130}, {601, 131}, {301, 192}};

Case named(const std::string& name, const Shape& shape) {
  Case c;
  c.op = "layer_norm";
  c.name = name + to_string(shape);
  // Sums over a row, and over all rows for gain and bias.
  c.reduction = shape.back() + elements_of(shape) / shape.back();
  return c;
}

Case plain_case(const Shape& shape) {
  Case c = named("layer_norm", shape);
  c.inputs = {act(shape), param({shape.back()}), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    return Tensors{ops::layer_norm(in[0], in[1], in[2], kEps)};
  };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::layer_norm(in[0], in[1], in[2], kEps)};
  };
  return c;
}

void add_without(const char* what, bool gain, bool bias) {
  Case c = plain_case({11, 45});
  c.name += what;
  const auto with = [=](auto op, std::span<const Tensor> in) {
    return Tensors{op(in[0], gain ? in[1] : Tensor(), bias ? in[1] : Tensor(), kEps)};
  };
  if (gain || bias)
    c.inputs = {act({11, 45}), param({45})};
  else
    c.inputs = {act({11, 45})};
  c.run = [=](std::span<const Tensor> in) { return with(ops::layer_norm, in); };
  c.reference = [=](std::span<const Tensor> in) { return with(ops::reference::layer_norm, in); };
  add_case(c);
}

Case residual_case(const Shape& shape) {
  Case c = named("add_layer_norm", shape);
  c.inputs = {act(shape), act(shape), param({shape.back()}), param({shape.back()})};
  c.run = [](std::span<const Tensor> in) {
    const auto r = ops::add_layer_norm(in[0], in[1], in[2], in[3], kEps);
    return Tensors{r.sum, r.y};
  };
  c.reference = [](std::span<const Tensor> in) {
    const auto r = ops::reference::add_layer_norm(in[0], in[1], in[2], in[3], kEps);
    return Tensors{r.sum, r.y};
  };
  // In bf16 the norm is that of the rounded sum.
  c.slack = 2;
  return c;
}

// One of the two results is not used: no cotangent arrives for it.
void add_half_used(std::size_t which) {
  Case c = residual_case({9, 37});
  c.name += which == 0 ? " only the sum" : " only the norm";
  if (which == 0)  // gain and bias have no gradient then
    for (const std::size_t i : {2u, 3u}) c.inputs[i] = constant(c.inputs[i]);
  c.run = [which, run = c.run](std::span<const Tensor> in) { return Tensors{run(in)[which]}; };
  c.reference = [which, reference = c.reference](std::span<const Tensor> in) {
    return Tensors{reference(in)[which]};
  };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : kShapes) {
    add_case(plain_case(shape));
    add_case(residual_case(shape));
  }
  add_without(" without bias", true, false);
  add_without(" without gain", false, true);
  add_without(" without either", false, false);
  add_half_used(0);
  add_half_used(1);

  using K = cpu::LayerNormKernels;
  add_norm_mutants<K>("layer_norm");
  add_kernel_mutant<K>("layer_norm", "the bias is forgotten", [](K& k) {
    k.forward = [](const cpu::NormArgs& a) noexcept {
      cpu::NormArgs b = a;
      b.bias = nullptr;
      sound<K>().forward(b);
    };
  });
  return true;
}();

// Far from zero the variance must not come from E[x²] - mean².
TEST(layer_norm_kernels, LargeMean) {
  std::vector<double> values = normals(64, 5);
  for (double& v : values) v = static_cast<double>(static_cast<float>(10000 + v));
  const auto got =
      to_doubles(ops::layer_norm(make_tensor({1, 64}, DType::f32, values), {}, {}, 1e-5));
  const auto want = to_doubles(
      ops::reference::layer_norm(make_tensor({1, 64}, DType::f64, values), {}, {}, 1e-5));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-3);
}

TEST(layer_norm_kernels, StreamingChangesNothing) {
  expect_streaming_changes_nothing<cpu::LayerNormKernels>();
}

TEST(layer_norm_calls, WrongOnesAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor p = Tensor::zeros({3});
  EXPECT_THROW(ops::layer_norm({}, p, p, kEps), Error);
  EXPECT_THROW(ops::layer_norm(Tensor::zeros({}), {}, {}, kEps), Error);
  EXPECT_THROW(ops::layer_norm(Tensor::zeros({2, 0}), {}, {}, kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, Tensor::zeros({4}), p, kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, Tensor::zeros({1, 3}), kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, Tensor::zeros({3}, DType::f64), kEps), Error);
  EXPECT_THROW(ops::layer_norm(x, p, p, -1), Error);
  EXPECT_THROW(ops::add_layer_norm(x, {}, p, p, kEps), Error);
  EXPECT_THROW(ops::add_layer_norm(x, Tensor::zeros({3, 2}), p, p, kEps), Error);
}

}  // namespace
}  // namespace heddle::harness::layer_norm_cases
