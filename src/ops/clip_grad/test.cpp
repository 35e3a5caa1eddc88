#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/clip_grad/clip_grad.kernels.h"
#include "ops/copy/copy.h"

namespace heddle::harness::clip_grad_cases {
namespace {

void add_norm(const std::string& name, const std::vector<Shape>& shapes) {
  Case c;
  c.op = "clip_grad";
  c.name = "global_norm " + name;
  for (const Shape& shape : shapes) c.inputs.push_back(act(shape));
  c.run = [](std::span<const Tensor> in) {
    return Tensors{Tensor::scalar(ops::global_norm(in), DType::f64, in[0].device())};
  };
  c.reference = [](std::span<const Tensor> in) {
    double sum = 0;
    for (const Tensor& x : in)
      for (const double v : to_doubles(x)) sum += v * v;
    return Tensors{Tensor::scalar(std::sqrt(sum), DType::f64)};
  };
  c.gradient = false;
  c.f16 = false;  // gradients are changed in place
  add_case(c);
}

void add_scale(const Shape& shape) {
  Case c;
  c.op = "clip_grad";
  c.name = "scale_into " + to_string(shape);
  c.inputs = {act(shape)};
  c.run = [](std::span<const Tensor> in) {
    Tensor x = ops::clone(in[0]);
    ops::scale_into(x, -0.375);
    return Tensors{x};
  };
  c.reference = elementwise([](std::span<const double> x) { return -0.375 * x[0]; });
  c.gradient = false;
  c.f16 = false;  // gradients are changed in place
  add_case(c);
}

const bool registered = [] {
  add_norm("one number", {{}});
  add_norm("nothing", {{0, 3}});
  add_norm("several tensors", {{3, 5}, {1}, {2, 2, 41}, {0}});
  add_norm("several blocks", {{3, 16411}, {70}});
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7, 5}, Shape{3, 16411}}) add_scale(shape);

  using K = cpu::ClipGradKernels;
  add_kernel_mutant<K>("clip_grad", "the last element does not count", [](K& k) {
    k.sum_squares = [](const cpu::SumSquaresArgs& a) noexcept {
      cpu::SumSquaresArgs b = a;
      b.count -= b.count > 1 ? 1 : 0;
      sound<K>().sum_squares(b);
    };
  });
  add_kernel_mutant<K>("clip_grad", "the last element is not scaled", [](K& k) {
    k.scale = [](const cpu::ScaleArgs& a) noexcept {
      cpu::ScaleArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().scale(b);
    };
  });
  return true;
}();

TEST(clip_grad_values, norms_beyond_float) {
  const Tensor large = Tensor::full({3}, 1e30), small = Tensor::full({3}, 1e-30);
  EXPECT_NEAR(ops::global_norm(std::span(&large, 1)) / 1e30, std::sqrt(3), 1e-6);
  EXPECT_NEAR(ops::global_norm(std::span(&small, 1)) / 1e-30, std::sqrt(3), 1e-6);
  const Tensor nan = Tensor::full({3}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(ops::global_norm(std::span(&nan, 1))));
  EXPECT_EQ(ops::global_norm({}), 0);
}

TEST(clip_grad_values, scale) {
  EXPECT_EQ(ops::clip_scale(0.5, 1), 1);
  EXPECT_EQ(ops::clip_scale(0, 1), 1);
  EXPECT_NEAR(ops::clip_scale(4, 1), 0.25, 1e-6);
  EXPECT_EQ(ops::clip_scale(std::numeric_limits<double>::infinity(), 1), 0);
  EXPECT_TRUE(std::isnan(ops::clip_scale(std::nan(""), 1)));
  Tensor x = Tensor::full({2}, 3);
  const auto before = x.version();
  ops::scale_into(x, 0.5);
  EXPECT_GT(x.version(), before);
}

TEST(clip_grad_errors, refuses) {
  EXPECT_THROW(ops::clip_scale(1, 0), Error);
  EXPECT_THROW(ops::clip_scale(1, std::nan("")), Error);
  EXPECT_THROW(ops::clip_scale(-1, 1), Error);
  const Tensor pair[] = {Tensor::zeros({2}), Tensor()};
  EXPECT_THROW(ops::global_norm(pair), Error);
  const Tensor whole = Tensor::zeros({2}, DType::i64);
  EXPECT_THROW(ops::global_norm(std::span(&whole, 1)), Error);
  Tensor none, gaps = views::slice(Tensor::zeros({8}), 0, 0, 8, 2);
  EXPECT_THROW(ops::scale_into(none, 1), Error);
  EXPECT_THROW(ops::scale_into(gaps, 1), Error);
  Tensor leaf = Tensor::zeros({2});
  leaf.set_requires_grad(true);
  const Tape tape;
  EXPECT_THROW(ops::scale_into(leaf, 1), Error);
}

}  // namespace
}  // namespace heddle::harness::clip_grad_cases
