// Products on the far side of the seam: what is asked of a device, what its plan takes, and what
// happens on one that has no routine for it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "backend/test_without.h"
#include "heddle/cost.h"
#include "heddle/memory.h"
#include "mock/mock.h"
#include "ops/elman/elman.call.h"
#include "ops/linear/linear.call.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/support/cpu/matrix.h"
#include "tensor/engine.h"

namespace heddle::backend {
namespace {

using Given = const std::vector<Tensor>&;

ops::LinearOptions with_activation(Activation activation) {
  ops::LinearOptions o;
  o.activation = activation;
  return o;
}

Tensor targets_of(std::initializer_list<std::int64_t> values, Device device = Device::cpu) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())}, values, device);
}

TEST(Products, WithoutARoutineTheReferenceComputes) {
  const Tensor x = drawn({2, 3, 4}, 1), w = drawn({5, 4}, 2), b = drawn({5}, 3),
               residual = drawn({2, 3, 5}, 4), back = drawn({4, 5}, 5), small = drawn({4}, 6);
  for (const Activation a : {Activation::none, Activation::relu, Activation::gelu,
                             Activation::gelu_tanh, Activation::silu}) {
    expect_reference_instead<ops::ProductsCall>("linear",
                                                [a](Given in) {
                                                  ops::LinearOptions o = with_activation(a);
                                                  o.residual = in[3];
                                                  return ops::linear(in[0], in[1], in[2], o);
                                                },
                                                {x, w, b, residual});
    expect_reference_instead<ops::ProductsCall>(
        "linear_pair",
        [a](Given in) { return ops::linear_pair(in[0], {in[1], in[2]}, a, {in[3], in[4]}); },
        {x, w, b, back, small});
  }
  expect_reference_instead<ops::ProductsCall>(
      "linear_many",
      [](Given in) {
        const std::vector<ops::LinearWeights> layers = {{in[1], in[2]}, {in[3], {}}};
        const std::vector<Tensor> y = ops::linear_many(in[0], layers);
        return ops::mul(y[0], y[1]);
      },
      {x, w, b, drawn({5, 4}, 7)});
}

TEST(Products, AReferenceIsNoWayAroundTheChecksOfLayers) {
  const Without<ops::ProductsCall> without;
  const Tensor x = drawn({3, 4}, 1), w = drawn({5, 4}, 2), wrong = drawn({5, 3}, 3);
  EXPECT_THROW(ops::linear(x, wrong), Error);
  const std::vector<ops::LinearWeights> layers = {{w, {}}, {wrong, {}}};
  EXPECT_THROW(ops::linear_many(x, layers), Error);
  EXPECT_THROW(ops::linear_pair(x, {w, {}}, Activation::relu, {wrong, {}}), Error);
  EXPECT_TRUE(ops::linear_many(x, {}).empty());
}

// The weight is rounded to bf16, sums are not: 1 + 2⁻⁷ stays as it is in the result, and 2⁻⁹ times
// 256 ones, which sums in bf16 would lose one by one, is there.
TEST(Products, WithoutARoutineSumsBesideBf16AreMadeInF32) {
  const Tensor x = Tensor::full({1, 257}, 1, DType::bf16);
  std::vector<float> values(257, 1.0F / 512);
  values[0] = 1 + 1.0F / 1024;  // rounds to 1
  const Tensor w = Tensor::from<float>({1, 257}, std::span<const float>(values));
  const Tensor bias = Tensor::full({1}, 1.0 / 128);
  ops::LinearOptions wide;
  wide.wide = true;
  const auto expect_sums = [&] {
    const Tensor narrow = ops::linear(x, w, bias), y = ops::linear(x, w, bias, wide);
    EXPECT_EQ(narrow.dtype(), DType::bf16);
    EXPECT_EQ(narrow.item(), 1.5078125);  // 1 + 256 / 512 + 1 / 128: seven bits after the first
    ASSERT_EQ(y.dtype(), DType::f32);
    EXPECT_EQ(y.item(), 1.5078125);
  };
  expect_sums();
  const Without<ops::ProductsCall> without;
  expect_sums();
}

ops::CrossEntropyOptions every_option(ops::Reduction reduction) {
  ops::CrossEntropyOptions o;
  o.ignore_index = 2;
  o.label_smoothing = 0.2;
  o.reduction = reduction;
  o.class_weights = Tensor::from<double>({4}, {1, 0.5, 3, 2});
  return o;
}

TEST(Losses, WithoutARoutineTheReferenceComputes) {
  const Tensor x = drawn({5, 3}, 1), w = drawn({4, 3}, 2), b = drawn({4}, 3), z = drawn({5, 4}, 4);
  const Tensor targets = targets_of({0, 2, 3, 1, 3});
  for (const auto reduction : {ops::Reduction::mean, ops::Reduction::sum, ops::Reduction::none}) {
    for (const bool plain : {false, true}) {
      ops::CrossEntropyOptions o = every_option(reduction);
      if (plain) o = {.reduction = reduction};
      expect_reference_instead<ops::LinearCrossEntropyCall>(
          "linear_cross_entropy",
          [&](Given in) { return ops::linear_cross_entropy(in[0], in[1], in[2], targets, o); },
          {x, w, b});
      expect_reference_instead<ops::CrossEntropyCall>(
          "cross_entropy", [&](Given in) { return ops::cross_entropy(in[0], targets, o); }, {z});
      expect_reference_instead<ops::CrossEntropyCall>(
          "nll_loss", [&](Given in) { return ops::nll_loss(in[0], targets, o); }, {z});
    }
  }
}

// By hand: log 4 for four equal logits; nothing counts, nothing is lost.
TEST(Losses, WithoutARoutineWhatCountsForNothingIsZero) {
  const Without<ops::CrossEntropyCall> without;
  const Tensor z = Tensor::zeros({3, 4}, DType::bf16);
  EXPECT_NEAR(ops::cross_entropy(z, targets_of({0, 3, 1})).item(), std::log(4.0), 1e-6);
  EXPECT_EQ(ops::cross_entropy(z, targets_of({0, 3, 1})).dtype(), DType::f32);
  EXPECT_EQ(ops::cross_entropy(z, targets_of({-100, -100, -100})).item(), 0);
  ops::CrossEntropyOptions weightless;
  weightless.label_smoothing = 0.5;
  weightless.class_weights = Tensor::from<float>({4}, {0, 1, 1, 1});
  EXPECT_EQ(ops::cross_entropy(z, targets_of({0, 0, 0}), weightless).item(), 0);
  EXPECT_THROW(ops::cross_entropy(z, targets_of({0, 4, 0})), Error);
  weightless.class_weights = Tensor::from<float>({4}, {0, -1, 1, 1});
  EXPECT_THROW(ops::cross_entropy(z, targets_of({0, 0, 0}), weightless), Error);
}

TEST(Scans, WithoutARoutineTheReferenceComputes) {
  const Tensor pre = drawn({3, 4, 2}, 1), u = drawn({2, 2}, 2), h0 = drawn({3, 2}, 3);
  for (const bool reverse : {false, true}) {
    const auto options = [&](Given in) {
      ops::ElmanOptions o;
      o.h0 = in[2];
      o.lengths = targets_of({4, 0, 3});
      o.reverse = reverse;
      return o;
    };
    expect_reference_instead<ops::ElmanCall>(
        "y", [&](Given in) { return ops::elman(in[0], in[1], options(in)).y; }, {pre, u, h0});
    expect_reference_instead<ops::ElmanCall>(
        "last", [&](Given in) { return ops::elman(in[0], in[1], options(in)).last; }, {pre, u, h0});
    expect_reference_instead<ops::ElmanCall>(
        "whole", [&](Given in) { return ops::elman(in[0], in[1], {.reverse = reverse}).y; },
        {pre, u});
  }
}

// The result and the gradients of what an op makes of inputs that are on another device.
std::vector<double> computed_there(const Op& op, std::vector<Tensor> inputs) {
  for (Tensor& x : inputs) {
    x = x.to(mock::device());
    x.set_requires_grad(true);
  }
  Tape tape;
  const std::int64_t before = device_reads();
  const Tensor y = op(inputs);
  tape.backward(ops::sum_all(ops::mul(y, drawn(y.shape(), 99).to(mock::device()))));
  EXPECT_EQ(device_reads(), before);  // no read from the device was needed
  std::vector<double> all = y.to_vector<double>();
  for (const Tensor& x : inputs) {
    const std::vector<double> grad = x.grad().to_vector<double>();
    all.insert(all.end(), grad.begin(), grad.end());
  }
  return all;
}

void expect_the_same_there(const char* name, const Op& op, const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(name);
  const std::vector<double> here = computed(op, inputs), there = computed_there(op, inputs);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-10) << i;
}

TEST(Products, ADeviceWithFewKernelsComputesThem) {
  const Tensor x = drawn({5, 3}, 1), w = drawn({4, 3}, 2), b = drawn({4}, 3);
  expect_the_same_there(
      "linear",
      [](Given in) { return ops::linear(in[0], in[1], in[2], with_activation(Activation::gelu)); },
      {x, w, b});
  expect_the_same_there("linear_cross_entropy",
                        [](Given in) {
                          ops::CrossEntropyOptions o = every_option(ops::Reduction::mean);
                          o.class_weights = o.class_weights.to(in[0].device());
                          return ops::linear_cross_entropy(
                              in[0], in[1], in[2], targets_of({0, 2, 3, 1, 3}, in[0].device()), o);
                        },
                        {x, w, b});
  expect_the_same_there("elman",
                        [](Given in) {
                          ops::ElmanOptions o;
                          o.lengths = targets_of({3, 1}, in[0].device());
                          return ops::elman(in[0], in[1], o).y;
                        },
                        {drawn({2, 3, 4}, 4), drawn({4, 4}, 5)});
}

// Targets and lengths of a batch stay with the host until an op needs them, and are checked there.
TEST(Losses, TargetsAndLengthsGoToTheDeviceOfTheNumbers) {
  const Tensor z = Tensor::zeros({2, 4}, DType::f32, mock::device());
  const std::int64_t before = device_reads();
  const Tensor loss = ops::cross_entropy(z, targets_of({3, 1}));
  EXPECT_THROW(ops::cross_entropy(z, targets_of({3, 4})), Error);
  EXPECT_THROW(ops::cross_entropy(Tensor::zeros({2, 4}), targets_of({3, 1}, mock::device())),
               Error);
  const Tensor pre = Tensor::full({2, 3, 1}, 0.5, DType::f32, mock::device());
  const Tensor u = Tensor::zeros({1, 1}, DType::f32, mock::device());
  const Tensor y = ops::elman(pre, u, {.h0 = {}, .lengths = targets_of({1, 0})}).y;
  EXPECT_THROW(ops::elman(pre, u, {.h0 = {}, .lengths = targets_of({4, 0})}), Error);
  EXPECT_EQ(device_reads(), before);
  EXPECT_NEAR(loss.item(), std::log(4.0), 1e-6);
  const std::vector<float> states = y.to_vector<float>();
  EXPECT_NEAR(states[0], std::tanh(0.5), 1e-6);
  for (std::size_t i = 1; i < states.size(); ++i) EXPECT_EQ(states[i], 0) << i;
}

// Two gradients of weights with the same right side: 5000 rows, of which 4096 are prepared at a
// time, once for both; sums of 5000 rows of 8 columns in 3 blocks.
TEST(Products, TheirPlanIsTheSameOnMeta) {
  const auto plan = [](Device device) {
    const auto make = [&](const Shape& shape) { return Tensor::zeros(shape, DType::f32, device); };
    const Tensor x = make({5000, 16}), dy = make({5000, 8});
    std::vector<ops::Product> products(2);
    for (ops::Product& p : products) {
      p.a = views::transpose(dy, 0, 1);
      p.b = x;
      p.c = make({8, 16});
    }
    ops::RowSums sums;
    sums.dy = sums.dsum = dy;
    sums.dbias = make({8});
    ops::ProductsCall call{products, std::span(&sums, 1)};
    const auto workspace = [device] {
      return memory_use(device).live_by_purpose[static_cast<std::size_t>(Purpose::workspace)];
    };
    const std::int64_t before = workspace();
    routine_of<ops::ProductsCall>(device).plan(call);
    EXPECT_EQ(products[0].prepared.impl(), products[1].prepared.impl());
    EXPECT_EQ(products[0].prepared.device(), device);
    EXPECT_EQ(sums.partial.shape(), (Shape{3, 8}));
    EXPECT_EQ(products[0].prepared.bytes(), cpu::packed_workspace(DType::f32, 4096, 16, x).bytes());
    return workspace() - before;
  };
  EXPECT_EQ(plan(Device::cpu), plan(Device::meta));
}

// A plan's time is that of its pieces, so each is booked on its own: the sums of dy, dx and dW.
TEST(Products, EachOfAGroupIsBookedOnItsOwn) {
  const auto flops_of_backward = [](Device device) {
    Tensor x = Tensor::zeros({10, 4}, DType::f32, device),
           w = Tensor::zeros({6, 4}, DType::f32, device),
           b = Tensor::zeros({6}, DType::f32, device);
    for (Tensor* t : {&x, &w, &b}) t->set_requires_grad(true);
    Tape tape;
    const Tensor y = ops::linear(x, w, b);
    const Tensor dy = Tensor::zeros({10, 6}, DType::f32, device);
    std::vector<double> flops;
    const CostMeter meter([&](const Cost& c) {
      if (c.flops > 0) flops.push_back(c.flops);
    });
    tape.backward(std::span(&y, 1), std::span(&dy, 1));
    return flops;
  };
  const std::vector<double> expected = {10 * 6, 2 * 10 * 6 * 4, 2 * 10 * 6 * 4};
  EXPECT_EQ(flops_of_backward(Device::cpu), expected);
  EXPECT_EQ(flops_of_backward(Device::meta), expected);
}

}  // namespace
}  // namespace heddle::backend
