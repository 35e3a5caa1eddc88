#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.h"
#include "ops/sgd/sgd.h"
#include "ops/sgd/sgd.kernels.h"

namespace heddle::harness::sgd_cases {
namespace {

using ops::SgdOptions;

double scale_in(const SgdOptions& o) { return o.grad_scale.defined() ? o.grad_scale.item() : 1; }

// On the device of the case's tensors, which may be the meta device.
SgdOptions beside(SgdOptions o, const Tensor& x) {
  if (o.grad_scale.defined()) o.grad_scale = Tensor::scalar(scale_in(o), DType::f64, x.device());
  return o;
}

Tensors by_hand(std::span<const Tensor> in, const SgdOptions& o) {
  auto w = to_doubles(in[0]);
  const auto grad = to_doubles(in[1]);
  auto b = to_doubles(in[2]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = scale_in(o) * grad[i] + o.weight_decay * w[i];
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
    ops::sgd(w, in[1], b, beside(options, w));
    return b.defined() ? Tensors{w, b} : Tensors{w};
  };
  c.reference = [=](std::span<const Tensor> in) { return by_hand(in, options); };
  c.gradient = false;
  c.bf16 = false;  // weights are f32 or f64
  add_case(c);
}

const bool registered = [] {
  const Tensor half = Tensor::scalar(0.5);
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{7, 41}, Shape{3, 16411}}) {
    add("plain ", shape, {0.1, 0, false, 0.3, half});
    add("momentum ", shape, {0.1, 0.9, false, 0.3, half});
    add("nesterov ", shape, {0.1, 0.9, true, 0.3, half});
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
  ops::sgd(w, Tensor::full({2}, 0.5), none, {0.5, 0, false, 0});
  EXPECT_GT(w.version(), before);
  EXPECT_EQ(to_doubles(w)[1], 0.75);
}

// Weight and buffer of a step with this scale of the gradient, by the routine or the reference.
std::vector<std::vector<double>> stepped(const Tensor& scale, bool nesterov, bool by_reference) {
  ops::SgdParameter p{Tensor::full({2, 3}, 1, DType::f64), Tensor::full({2, 3}, 2, DType::f64),
                      Tensor::full({2, 3}, 0.5, DType::f64), 0.25};
  const SgdOptions options{0.1, 0.5, nesterov, 0, scale};
  if (by_reference)
    ops::reference::sgd(p, options);
  else
    ops::sgd(std::span(&p, 1), options);
  return {to_doubles(p.weight), to_doubles(p.buffer)};
}

// g = 0.5·2 + 0.25·1 = 1.25, b = 0.5·0.5 + g = 1.5, w = 1 - 0.1·1.5 or 1 - 0.1·(g + 0.5·1.5).
TEST(sgd_values, by_hand_and_by_the_reference) {
  for (const bool by_reference : {false, true}) {
    const auto plain = stepped(Tensor::scalar(0.5, DType::f64), false, by_reference);
    EXPECT_NEAR(plain[0][3], 0.85, 1e-15);
    EXPECT_NEAR(plain[1][3], 1.5, 1e-15);
    EXPECT_NEAR(stepped(Tensor::scalar(0.5), true, by_reference)[0][3], 0.8, 1e-15);
    // Without a scale g = 2.25, b = 2.5.
    EXPECT_NEAR(stepped({}, false, by_reference)[0][3], 0.75, 1e-15);
  }
}

TEST(sgd_values, a_scale_that_is_not_finite_changes_nothing) {
  for (const bool by_reference : {false, true})
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      const auto after = stepped(Tensor::scalar(bad, DType::f64), true, by_reference);
      EXPECT_EQ(after[0], std::vector<double>(6, 1));
      EXPECT_EQ(after[1], std::vector<double>(6, 0.5));
    }
}

TEST(sgd_values, many_at_once_are_the_same_bits_as_one_by_one) {
  std::vector<ops::SgdParameter> together, alone;
  for (const std::int64_t n : {1, 37, 40000, 8192, 5}) {
    const Tensor x = make_tensor({n}, DType::f32, normals(n, 1));
    for (auto* list : {&together, &alone})
      list->push_back({ops::clone(x), x, ops::clone(x), n == 37 ? 0 : 0.1});
  }
  SgdOptions options{0.05, 0.9, true, 0, Tensor::scalar(0.3)};
  ops::sgd(together, options);
  for (ops::SgdParameter& p : alone) {
    options.weight_decay = p.weight_decay;
    ops::sgd(p.weight, p.grad, p.buffer, options);
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(to_doubles(together[i].weight), to_doubles(alone[i].weight));
    EXPECT_EQ(to_doubles(together[i].buffer), to_doubles(alone[i].buffer));
  }
}

TEST(sgd_errors, refuses) {
  Tensor w = Tensor::zeros({4}), b = Tensor::zeros({4}), none;
  const Tensor grad = Tensor::zeros({4});
  const SgdOptions momentum{0.1, 0.9, false, 0};
  EXPECT_NO_THROW(ops::sgd(w, grad, b, momentum));
  EXPECT_THROW(ops::sgd(w, grad, none, momentum), Error);
  EXPECT_THROW(ops::sgd(w, grad, b, {}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {-1, 0, false, 0}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, true, 0}), Error);
  EXPECT_THROW(ops::sgd(w, grad, b, {0.1, -0.9, false, 0}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, false, -1}), Error);
  EXPECT_THROW(ops::sgd(w, grad, none, {0.1, 0, false, 0, Tensor::zeros({1})}), Error);
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
