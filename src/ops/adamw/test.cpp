#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/adamw/adamw.h"
#include "ops/adamw/adamw.kernels.h"
#include "ops/copy/copy.h"
#include "ops/support/cpu/packed_weight.h"

namespace heddle::harness::adamw_cases {
namespace {

using ops::AdamWOptions;

double scale_in(const AdamWOptions& o) { return o.grad_scale.defined() ? o.grad_scale.item() : 1; }

// On the device of the case's tensors, which may be the meta device.
AdamWOptions beside(AdamWOptions o, const Tensor& x) {
  if (o.grad_scale.defined()) o.grad_scale = Tensor::scalar(scale_in(o), DType::f64, x.device());
  return o;
}

Tensors by_hand(std::span<const Tensor> in, const AdamWOptions& o) {
  auto w = to_doubles(in[0]);
  const auto grad = to_doubles(in[1]);
  auto m = to_doubles(in[2]);
  auto v = to_doubles(in[3]);
  const auto step = static_cast<double>(o.step);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = scale_in(o) * grad[i];
    w[i] -= o.lr * o.weight_decay * w[i];
    m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
    v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
    const double m_hat = m[i] / (1 - std::pow(o.beta1, step));
    const double v_hat = v[i] / (1 - std::pow(o.beta2, step));
    w[i] -= o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
  const Shape& shape = in[0].shape();
  return {make_tensor(shape, DType::f64, w), make_tensor(shape, DType::f64, m),
          make_tensor(shape, DType::f64, v)};
}

void add(const std::string& name, const Shape& shape, const AdamWOptions& options) {
  Case c;
  c.op = "adamw";
  c.name = name + to_string(shape);
  c.inputs = {act(shape), act(shape), act(shape), act(shape, Fill::positive)};
  c.run = [=](std::span<const Tensor> in) {
    Tensor w = ops::clone(in[0]), m = ops::clone(in[2]), v = ops::clone(in[3]);
    ops::adamw(w, in[1], m, v, beside(options, w));
    return Tensors{w, m, v};
  };
  c.reference = [=](std::span<const Tensor> in) { return by_hand(in, options); };
  c.gradient = false;
  c.bf16 = false;  // weights are f32 or f64
  add_case(c);
}

// Tensors of several sizes in one call, among them an empty one and one of several pieces.
void add_many(const AdamWOptions& options) {
  const std::vector<Shape> shapes = {{3}, {2, 8200}, {0, 4}, {5, 7}, {1, 1}};
  Case c;
  c.op = "adamw";
  c.name = "many";
  for (const Shape& shape : shapes)
    for (const In& in : {act(shape), act(shape), act(shape), act(shape, Fill::positive)})
      c.inputs.push_back(in);
  // Decays alternate: each parameter has its own.
  const auto decay = [](std::size_t i) { return i / 4 % 2 == 0 ? 0.1 : 0; };
  c.run = [=](std::span<const Tensor> in) {
    std::vector<ops::AdamWParameter> all;
    for (std::size_t i = 0; i < in.size(); i += 4)
      all.push_back(
          {ops::clone(in[i]), in[i + 1], ops::clone(in[i + 2]), ops::clone(in[i + 3]), decay(i)});
    ops::adamw(all, beside(options, in[0]));
    Tensors out;
    for (const ops::AdamWParameter& p : all)
      for (const Tensor& t : {p.weight, p.m, p.v}) out.push_back(t);
    return out;
  };
  c.reference = [=](std::span<const Tensor> in) {
    Tensors out;
    for (std::size_t i = 0; i < in.size(); i += 4) {
      AdamWOptions own = options;
      own.weight_decay = decay(i);
      for (const Tensor& t : by_hand(in.subspan(i, 4), own)) out.push_back(t);
    }
    return out;
  };
  c.gradient = false;
  c.bf16 = false;
  add_case(c);
}

const bool registered = [] {
  const AdamWOptions usual{0.05, 0.9, 0.95, 1e-8, 0.1, 3};
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{7, 41}, Shape{3, 16411}})
    add("usual ", shape, usual);
  add("first step ", {37}, {0.1, 0.9, 0.999, 1e-3, 0, 1});
  add("scaled gradient ", {37}, {0.1, 0.8, 0.99, 0.5, 0.3, 10, Tensor::scalar(0.125)});
  add("no momentum ", {37}, {0.1, 0, 0, 0.1, 0.3, 2, Tensor::scalar(-1)});

  add_many({0.1, 0.8, 0.99, 0.5, 0.3, 10, Tensor::scalar(0.125)});

  using K = cpu::AdamwKernels;
  add_kernel_mutant<K>("adamw", "no weight decay", [](K& k) {
    k.step = [](const cpu::AdamWArgs& a) noexcept {
      cpu::AdamWArgs b = a;
      b.decay = 1;
      sound<K>().step(b);
    };
  });
  add_kernel_mutant<K>("adamw", "v is not corrected", [](K& k) {
    k.step = [](const cpu::AdamWArgs& a) noexcept {
      cpu::AdamWArgs b = a;
      b.inverse_correction = 1;
      sound<K>().step(b);
    };
  });
  add_kernel_mutant<K>("adamw", "the gradient's scale is forgotten", [](K& k) {
    k.step = [](const cpu::AdamWArgs& a) noexcept {
      cpu::AdamWArgs b = a;
      b.grad_scale = 1;
      sound<K>().step(b);
    };
  });
  add_kernel_mutant<K>("adamw", "the last weight stays", [](K& k) {
    k.step = [](const cpu::AdamWArgs& a) noexcept {
      cpu::AdamWArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().step(b);
    };
  });
  return true;
}();

TEST(adamw_values, bumps_the_version) {
  Tensor w = Tensor::full({2}, 1), m = Tensor::zeros({2}), v = Tensor::zeros({2});
  const Tensor grad = Tensor::full({2}, 0.5);
  const auto before = w.version();
  ops::adamw(w, grad, m, v, {0.1, 0.9, 0.99, 0, 0.1, 1});
  EXPECT_GT(w.version(), before);
  EXPECT_GT(m.version(), 0u);
  // The first step moves by the whole learning rate, against the gradient's sign.
  EXPECT_NEAR(to_doubles(w)[0], 0.99 - 0.1, 1e-6);
}

TEST(adamw_values, many_at_once_are_the_same_bits_as_one_by_one) {
  std::vector<ops::AdamWParameter> together, alone;
  for (const std::int64_t n : {1, 37, 40000, 8192, 5}) {
    const Tensor x = make_tensor({n}, DType::f32, normals(n, 1));
    for (auto* list : {&together, &alone})
      list->push_back({ops::clone(x), x, ops::clone(x), Tensor::full({n}, 0.5), 0.1});
  }
  const AdamWOptions options{0.05, 0.9, 0.95, 1e-8, 0.1, 3, Tensor::scalar(0.5)};
  ops::adamw(together, options);
  for (ops::AdamWParameter& p : alone) ops::adamw(p.weight, p.grad, p.m, p.v, options);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(to_doubles(together[i].weight), to_doubles(alone[i].weight));
    EXPECT_EQ(to_doubles(together[i].m), to_doubles(alone[i].m));
    EXPECT_EQ(to_doubles(together[i].v), to_doubles(alone[i].v));
  }
}

// The weights, m and v of a step with this scale of the gradient, by the routine or the reference.
std::vector<std::vector<double>> stepped(const Tensor& scale, bool by_reference) {
  ops::AdamWParameter p{Tensor::full({2, 3}, 1, DType::f64), Tensor::full({2, 3}, 2, DType::f64),
                        Tensor::full({2, 3}, 0.5, DType::f64), Tensor::full({2, 3}, 4, DType::f64),
                        0.1};
  const AdamWOptions options{0.05, 0.9, 0.95, 1e-8, 0, 3, scale};
  if (by_reference)
    ops::reference::adamw(p, options);
  else
    ops::adamw(std::span(&p, 1), options);
  return {to_doubles(p.weight), to_doubles(p.m), to_doubles(p.v)};
}

TEST(adamw_values, a_scale_that_is_not_finite_changes_nothing) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const bool by_reference : {false, true}) {
    for (const double bad : {std::nan(""), inf, -inf}) {
      const auto after = stepped(Tensor::scalar(bad, DType::f64), by_reference);
      EXPECT_EQ(after[0], std::vector<double>(6, 1));
      EXPECT_EQ(after[1], std::vector<double>(6, 0.5));
      EXPECT_EQ(after[2], std::vector<double>(6, 4));
    }
    const auto after = stepped(Tensor::scalar(0.5, DType::f64), by_reference);
    EXPECT_NEAR(after[1][5], 0.5 + 0.1 * (1 - 0.5), 1e-15);
    EXPECT_NEAR(after[2][5], 0.95 * 4 + 0.05 * 1, 1e-15);
    EXPECT_LT(after[0][5], 1);
  }
}

TEST(adamw_values, the_reference_is_the_same_step) {
  for (const Tensor& scale : {Tensor(), Tensor::scalar(0.5, DType::f64), Tensor::scalar(-2)}) {
    const auto routine = stepped(scale, false), reference = stepped(scale, true);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(routine[i][4], reference[i][4], 1e-14) << i;
  }
}

// A weight of several pieces, which several threads write.
TEST(adamw_values, packed_weights_follow) {
  std::vector<ops::AdamWParameter> all;
  for (const std::int64_t rows : {3, 100})
    all.push_back({make_tensor({rows, 300}, DType::f32, normals(rows * 300, 1)),
                   Tensor::full({rows, 300}, 0.5), Tensor::zeros({rows, 300}),
                   Tensor::zeros({rows, 300}), 0});
  std::vector<Tensor> packed;
  for (const auto& p : all) packed.push_back(cpu::packed_weight(p.weight, DType::f32));
  ops::adamw(all, {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t after = packed[i].version();
    const Tensor fresh = cpu::packed_weight(ops::clone(all[i].weight), DType::f32);
    EXPECT_EQ(packed[i].to_vector<std::uint8_t>(), fresh.to_vector<std::uint8_t>());
    cpu::packed_weight(all[i].weight, DType::f32);
    EXPECT_EQ(packed[i].version(), after);  // not packed again
  }
}

TEST(adamw_errors, refuses) {
  Tensor w = Tensor::zeros({4}), m = Tensor::zeros({4}), v = Tensor::zeros({4});
  const Tensor grad = Tensor::zeros({4});
  const auto with = [&](auto change) {
    AdamWOptions o;
    change(o);
    ops::adamw(w, grad, m, v, o);
  };
  EXPECT_NO_THROW(with([](AdamWOptions&) {}));
  EXPECT_THROW(with([](AdamWOptions& o) { o.lr = -1; }), Error);
  EXPECT_THROW(with([](AdamWOptions& o) { o.beta1 = 1; }), Error);
  EXPECT_THROW(with([](AdamWOptions& o) { o.beta2 = -0.1; }), Error);
  EXPECT_THROW(with([](AdamWOptions& o) { o.eps = std::nan(""); }), Error);
  EXPECT_THROW(with([](AdamWOptions& o) { o.weight_decay = -1; }), Error);
  EXPECT_THROW(with([](AdamWOptions& o) { o.step = 0; }), Error);
  for (const Tensor& bad : {Tensor::zeros({1}), Tensor::scalar(1, DType::bf16),
                            Tensor::scalar(1, DType::f64, Device::meta)})
    EXPECT_THROW(with([&bad](AdamWOptions& o) { o.grad_scale = bad; }), Error) << bad.describe();
  Tensor none, other = Tensor::zeros({5}), wide = Tensor::zeros({4}, DType::f64);
  Tensor gaps = views::slice(Tensor::zeros({8}), 0, 0, 8, 2);
  Tensor narrow = Tensor::zeros({4}, DType::bf16);
  EXPECT_THROW(ops::adamw(none, grad, m, v, {}), Error);
  EXPECT_THROW(ops::adamw(w, none, m, v, {}), Error);
  EXPECT_THROW(ops::adamw(w, other, m, v, {}), Error);
  EXPECT_THROW(ops::adamw(w, grad, wide, v, {}), Error);
  EXPECT_THROW(ops::adamw(w, grad, m, gaps, {}), Error);
  EXPECT_THROW(ops::adamw(gaps, grad, m, v, {}), Error);
  EXPECT_THROW(ops::adamw(narrow, narrow, narrow, narrow, {}), Error);
  w.set_requires_grad(true);
  {
    const Tape tape;
    EXPECT_THROW(ops::adamw(w, grad, m, v, {}), Error);
    const NoGrad no_grad;
    EXPECT_NO_THROW(ops::adamw(w, grad, m, v, {}));
  }
}

}  // namespace
}  // namespace heddle::harness::adamw_cases
