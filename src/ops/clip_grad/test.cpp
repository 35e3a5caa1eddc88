#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/clip_grad/clip_grad.h"
#include "ops/clip_grad/clip_grad.kernels.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"

namespace heddle::harness::clip_grad_cases {
namespace {

void add_norm(const std::string& name, const std::vector<Shape>& shapes) {
  Case c;
  c.op = "clip_grad";
  c.name = "global_norm " + name;
  for (const Shape& shape : shapes) c.inputs.push_back(act(shape));
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::global_norm(in)}; };
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

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST(clip_grad_values, norms_beyond_float) {
  const Tensor large = Tensor::full({3}, 1e30), small = Tensor::full({3}, 1e-30);
  const Tensor nan = Tensor::full({3}, kNan);
  for (const auto norm : {ops::global_norm, ops::reference::global_norm}) {
    EXPECT_NEAR(norm(std::span(&large, 1)).item() / 1e30, std::sqrt(3), 1e-6);
    EXPECT_NEAR(norm(std::span(&small, 1)).item() / 1e-30, std::sqrt(3), 1e-6);
    EXPECT_TRUE(std::isnan(norm(std::span(&nan, 1)).item()));
    const Tensor both[] = {Tensor::full({3, 3}, 1), Tensor::full({4}, 2, DType::f64)};
    EXPECT_EQ(norm(std::span<const Tensor>(both)).item(), 5);
  }
  EXPECT_EQ(ops::global_norm({}).item(), 0);
}

double scale_of(double norm, double most, std::vector<double> values, bool by_reference) {
  std::vector<Tensor> losses;
  for (const double v : values) losses.push_back(Tensor::scalar(v));
  const Tensor length = Tensor::scalar(norm, DType::f64);
  return (by_reference ? ops::reference::clip_scale : ops::clip_scale)(length, most, losses).item();
}

TEST(clip_grad_values, scale) {
  for (const bool by_reference : {false, true}) {
    const auto scale = [&](double norm, double most, std::vector<double> losses = {}) {
      return scale_of(norm, most, std::move(losses), by_reference);
    };
    EXPECT_EQ(scale(0.5, 1), 1);
    EXPECT_EQ(scale(0, 1), 1);
    EXPECT_EQ(scale(4, 1), 1 / (4 + 1e-6));
    EXPECT_EQ(scale(4, 1, {3, 1e38}), 1 / (4 + 1e-6));
    EXPECT_EQ(scale(4, kInf), 1);
    EXPECT_TRUE(std::isnan(scale(kInf, 1)));
    EXPECT_TRUE(std::isnan(scale(kInf, kInf)));
    EXPECT_TRUE(std::isnan(scale(kNan, 1)));
    EXPECT_TRUE(std::isnan(scale(0.5, 1, {2, kInf})));
    EXPECT_TRUE(std::isnan(scale(0.5, 1, {kNan, 2})));
  }
}

TEST(clip_grad_values, scaling_in_place_is_a_change) {
  Tensor x = Tensor::full({2}, 3);
  const auto before = x.version();
  ops::scale_into(x, 0.5);
  EXPECT_GT(x.version(), before);
}

TEST(clip_grad_errors, refuses) {
  const Tensor one = Tensor::scalar(1);
  EXPECT_THROW(ops::clip_scale(one, 0), Error);
  EXPECT_THROW(ops::clip_scale(one, kNan), Error);
  EXPECT_THROW(ops::clip_scale(Tensor::scalar(-1), 1), Error);
  EXPECT_THROW(ops::clip_scale(Tensor(), 1), Error);
  for (const Tensor& bad : {Tensor(), Tensor::zeros({1}), Tensor::scalar(1, DType::i64),
                            Tensor::scalar(1, DType::f32, Device::meta)})
    EXPECT_THROW(ops::clip_scale(one, 1, std::span(&bad, 1)), Error) << bad.describe();
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

TEST(clip_grad_errors, a_norm_on_a_tape_has_no_gradient_and_says_so) {
  Tape tape;
  Tensor x = Tensor::full({2}, 3);
  x.set_requires_grad(true);
  const Tensor squares = ops::square(x);
  const Tensor norm = ops::global_norm(std::span(&squares, 1));
  EXPECT_THROW(tape.backward(norm), Error);
}

}  // namespace
}  // namespace heddle::harness::clip_grad_cases
