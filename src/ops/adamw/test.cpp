#include <gtest/gtest.h>

#include <cmath>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/adamw/adamw.h"
#include "ops/adamw/adamw.kernels.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"

namespace heddle::harness::adamw_cases {
namespace {

using ops::AdamWOptions;

Tensors by_hand(std::span<const Tensor> in, const AdamWOptions& o) {
  auto w = to_doubles(in[0]);
  const auto grad = to_doubles(in[1]);
  auto m = to_doubles(in[2]);
  auto v = to_doubles(in[3]);
  const auto step = static_cast<double>(o.step);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = o.grad_scale * grad[i];
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
    ops::adamw(w, in[1], m, v, options);
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
    // The weights are those that behind() sees: each once, complete.
    std::vector<Tensor> seen;
    for (const auto& p : all)
      seen.push_back(Tensor::zeros(p.weight.shape(), p.weight.dtype(), p.weight.device()));
    ops::adamw(all, options, [&](std::size_t i) { ops::add_into(seen[i], all[i].weight); });
    Tensors out;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const Tensor& t : {seen[i], all[i].m, all[i].v}) out.push_back(t);
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
  c.cost_by_shape = false;  // behind() is for values: it is not called on the meta device
  add_case(c);
}

const bool registered = [] {
  const AdamWOptions usual{0.05, 0.9, 0.95, 1e-8, 0.1, 3, 1};
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{7, 41}, Shape{3, 16411}})
    add("usual ", shape, usual);
  add("first step ", {37}, {0.1, 0.9, 0.999, 1e-3, 0, 1, 1});
  add("scaled gradient ", {37}, {0.1, 0.8, 0.99, 0.5, 0.3, 10, 0.125});
  add("no momentum ", {37}, {0.1, 0, 0, 0.1, 0.3, 2, -1});

  add_many({0.1, 0.8, 0.99, 0.5, 0.3, 10, 0.125});

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
  ops::adamw(w, grad, m, v, {0.1, 0.9, 0.99, 0, 0.1, 1, 1});
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
  const AdamWOptions options{0.05, 0.9, 0.95, 1e-8, 0.1, 3, 0.5};
  ops::adamw(together, options);
  for (ops::AdamWParameter& p : alone) ops::adamw(p.weight, p.grad, p.m, p.v, options);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(to_doubles(together[i].weight), to_doubles(alone[i].weight));
    EXPECT_EQ(to_doubles(together[i].m), to_doubles(alone[i].m));
    EXPECT_EQ(to_doubles(together[i].v), to_doubles(alone[i].v));
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
  EXPECT_THROW(with([](AdamWOptions& o) { o.grad_scale = std::nan(""); }), Error);
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
