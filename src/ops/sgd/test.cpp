#include <gtest/gtest.h>

#include <cmath>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.h"
#include "ops/sgd/sgd.h"
#include "ops/sgd/sgd.kernels.h"

namespace heddle::harness::sgd_cases {
namespace {

using ops::SgdOptions;

Tensors by_hand(std::span<const Tensor> in, const SgdOptions& o) {
  auto w = to_doubles(in[0]);
  const auto grad = to_doubles(in[1]);
  auto b = to_doubles(in[2]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = o.grad_scale * grad[i] + o.weight_decay * w[i];
    double direction = g;
    if (o.momentum > 0) {
      b[i] = o.momentum * b[i] + g;
      direction = o.nesterov ? g + o.momentum * b[i] : b[i];
    }
    w[i] -= o.lr * direction;
  }
  const Shape& shape = in[0].shape();
  Tensors out{make_tensor(shape, DType::f64, w)};
  if (o.momentum > 0) out.push_back(make_tensor(shape, DType::f64, b));
  return out;
}

void add(const std::string& name, const Shape& shape, const SgdOptions& options) {
  Case c;
  c.op = "sgd";
  c.name = name + to_string(shape);
  c.inputs = {act(shape), act(shape), act(shape)};
  c.run = [=](std::span<const Tensor> in) {
    Tensor w = ops::clone(in[0]);
    Tensor b = options.momentum > 0 ? ops::clone(in[2]) : Tensor();
    ops::sgd(w, in[1], b, options);
    return b.defined() ? Tensors{w, b} : Tensors{w};
  };
  c.reference = [=](std::span<const Tensor> in) { return by_hand(in, options); };
  c.gradient = false;
  c.bf16 = false;  // weights are f32 or f64
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{7, 41}, Shape{3, 16411}}) {
    add("plain ", shape, {0.1, 0, false, 0.3, 0.5});
    add("momentum ", shape, {0.1, 0.9, false, 0.3, 0.5});
    add("nesterov ", shape, {0.1, 0.9, true, 0.3, 0.5});
  }
  using K = cpu::SgdKernels;
  add_kernel_mutant<K>("sgd", "nesterov's look ahead is forgotten", [](K& k) {
    k.step = [](const cpu::SgdArgs& a) noexcept {
      cpu::SgdArgs b = a;
      b.nesterov = false;
      sound<K>().step(b);
    };
  });
  add_kernel_mutant<K>("sgd", "the weight decay is scaled like the gradient", [](K& k) {
    k.step = [](const cpu::SgdArgs& a) noexcept {
      cpu::SgdArgs b = a;
      b.weight_decay *= b.grad_scale;
      sound<K>().step(b);
    };
  });
  add_kernel_mutant<K>("sgd", "the last weight stays", [](K& k) {
    k.step = [](const cpu::SgdArgs& a) noexcept {
      cpu::SgdArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().step(b);
    };
  });
  return true;
}();

TEST(sgd_values, bumps_the_version) {
  Tensor w = Tensor::full({2}, 1), none;
  const auto before = w.version();
  ops::sgd(w, Tensor::full({2}, 0.5), none, {0.5, 0, false, 0, 1});
  EXPECT_GT(w.version(), before);
  EXPECT_EQ(to_doubles(w)[1], 0.75);
}

TEST(sgd_errors, refuses) {
  Tensor w = Tensor::zeros({4}), b = Tensor::zeros({4}), none;
  const Tensor grad = Tensor::zeros({4});
  const SgdOptions momentum{0.1, 0.9, false, 0, 1};
  EXPECT_NO_THROW(ops::sgd(w, grad, b, momentum));
  EXPECT_THROW(ops::sgd(w, grad, none, momentum), Error);
  EXPECT_THROW(ops::sgd(w, grad, b, {}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {-1, 0, false, 0, 1}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, true, 0, 1}), Error);
  EXPECT_THROW(ops::sgd(w, grad, b, {0.1, -0.9, false, 0, 1}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, false, -1, 1}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, false, 0, std::nan("")}), Error);
  Tensor other = Tensor::zeros({5}), narrow = Tensor::zeros({4}, DType::bf16);
  Tensor gaps = views::slice(Tensor::zeros({8}), 0, 0, 8, 2);
  EXPECT_THROW(ops::sgd(none, grad, none, {}), Error);
  EXPECT_THROW(ops::sgd(w, other, none, {}), Error);
  EXPECT_THROW(ops::sgd(w, grad, other, momentum), Error);
  EXPECT_THROW(ops::sgd(gaps, grad, none, {}), Error);
  EXPECT_THROW(ops::sgd(w, grad, gaps, momentum), Error);
  EXPECT_THROW(ops::sgd(narrow, narrow, none, {}), Error);
  w.set_requires_grad(true);
  const Tape tape;
  EXPECT_THROW(ops::sgd(w, grad, none, {}), Error);
}

}  // namespace
}  // namespace heddle::harness::sgd_cases
