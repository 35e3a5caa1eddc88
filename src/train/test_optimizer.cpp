#include <cmath>

#include "ops/copy/copy.h"
#include "ops/random/random.h"
#include "ops/support/product.h"
#include "train/optimizer.h"
#include "train/test_support.h"

namespace heddle::train {
namespace {

struct Params {
  nn::ParameterStore store{nn::StoreOptions{}};
  Tensor matrix = store.root().weight("matrix", {3, 5});
  Tensor gain = store.root().constant("gain", {5}, 1);
};

TrainConfig config(OptimizerKind kind) {
  TrainConfig c = toy_training();
  c.optimizer = kind;
  c.weight_decay = 0.3;
  c.clip = 0.7;
  return c;
}

Tensor gradient(const Tensor& like, std::uint32_t step, std::uint32_t op) {
  return ops::random_normal(like.shape(), 0.1, 1, {5, step, op});
}

// One parameter's history by the book, in float64.
struct Book {
  std::vector<double> w, m, v;

  explicit Book(const Tensor& t) {
    for (const float x : t.to_vector<float>()) w.push_back(x);
    m.assign(w.size(), 0);
    v.assign(w.size(), 0);
  }
  void adamw(const TrainConfig& c, const Tensor& grad, int step, double rate, double scale,
             double decay) {
    const auto g = grad.to_vector<float>();
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double x = scale * g[i];
      w[i] -= rate * decay * w[i];
      m[i] = c.beta1 * m[i] + (1 - c.beta1) * x;
      v[i] = c.beta2 * v[i] + (1 - c.beta2) * x * x;
      const double mean = m[i] / (1 - std::pow(c.beta1, step));
      const double size = std::sqrt(v[i] / (1 - std::pow(c.beta2, step))) + c.epsilon;
      w[i] -= rate * mean / size;
    }
  }
  void sgd(const TrainConfig& c, const Tensor& grad, double rate, double scale, double decay) {
    const auto g = grad.to_vector<float>();
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double x = scale * g[i] + decay * w[i];
      m[i] = c.momentum * m[i] + x;
      w[i] -= rate * (c.nesterov ? x + c.momentum * m[i] : m[i]);
    }
  }
  void expect_near(const Tensor& t) const {
    const auto got = t.to_vector<float>();
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(got[i], w[i], 2e-5) << i;
  }
};

double norm_of(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (const Tensor& t : {a, b})
    for (const float x : t.to_vector<float>()) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

void follow_the_book(const TrainConfig& c) {
  Params p;
  Optimizer optimizer(c, p.store);
  Book matrix(p.matrix), gain(p.gain);
  for (int step = 1; step <= 30; ++step) {
    const auto s = static_cast<std::uint32_t>(step);
    const double rate = 0.1 / step;
    const Tensor dm = gradient(p.matrix, s, 1), dg = gradient(p.gain, s, 2);
    p.matrix.set_grad(dm);
    p.gain.set_grad(dg);
    const double norm = optimizer.gradient_norm();
    EXPECT_NEAR(norm, norm_of(dm, dg), 1e-6);
    optimizer.step(step, rate, norm);
    EXPECT_FALSE(p.matrix.grad().defined());
    const double scale = c.clip > 0 ? std::min(1.0, c.clip / (norm + 1e-6)) : 1;
    if (c.optimizer == OptimizerKind::adamw) {
      matrix.adamw(c, dm, step, rate, scale, c.weight_decay);
      gain.adamw(c, dg, step, rate, scale, 0);  // gains are not decayed
    } else {
      matrix.sgd(c, dm, rate, scale, c.weight_decay);
      gain.sgd(c, dg, rate, scale, 0);
    }
  }
  matrix.expect_near(p.matrix);
  gain.expect_near(p.gain);
}

TEST(Optimizer, AdamWFollowsTheBook) { follow_the_book(config(OptimizerKind::adamw)); }

TEST(Optimizer, SgdFollowsTheBook) {
  TrainConfig c = config(OptimizerKind::sgd);
  follow_the_book(c);
  c.momentum = 0.9;
  follow_the_book(c);
  c.nesterov = true;
  c.clip = 0;
  follow_the_book(c);
}

TEST(Optimizer, PacksWeightsWithTheirUpdate) {
  for (const auto kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    Params p;
    Optimizer optimizer(config(kind), p.store);
    const Tensor packed = ops::packed_weight(p.matrix, DType::f32);
    const std::uint64_t before = packed.version();
    p.matrix.set_grad(gradient(p.matrix, 1, 1));
    optimizer.step(1, 0.1, optimizer.gradient_norm());
    const std::uint64_t after = packed.version();
    EXPECT_GT(after, before);
    const Tensor fresh = ops::packed_weight(ops::clone(p.matrix), DType::f32);
    EXPECT_EQ(packed.to_vector<std::uint8_t>(), fresh.to_vector<std::uint8_t>());
    ops::packed_weight(p.matrix, DType::f32);
    EXPECT_EQ(packed.version(), after);  // not packed again
  }
}

TEST(Optimizer, AMissingGradientIsZero) {
  for (const auto kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    Params a, b;
    Optimizer left(config(kind), a.store), right(config(kind), b.store);
    for (int step = 1; step <= 3; ++step) {
      const Tensor g = gradient(a.matrix, static_cast<std::uint32_t>(step), 1);
      a.matrix.set_grad(g);
      b.matrix.set_grad(g);
      b.gain.set_grad(Tensor::zeros({5}));
      left.step(step, 0.1, left.gradient_norm());
      right.step(step, 0.1, right.gradient_norm());
    }
    EXPECT_EQ(a.matrix.to_vector<float>(), b.matrix.to_vector<float>());
    EXPECT_EQ(a.gain.to_vector<float>(), b.gain.to_vector<float>());
  }
}

TEST(Optimizer, KeepsWhatItNeedsAndBooksIt) {
  Params p;
  const auto before = memory_use(Device::cpu).live_by_purpose[int(Purpose::optimizer)];
  const Optimizer adamw(config(OptimizerKind::adamw), p.store);
  ASSERT_EQ(adamw.state().size(), 4u);
  EXPECT_EQ(adamw.state()[0].name, "adamw.m.matrix");
  EXPECT_EQ(adamw.state()[3].name, "adamw.v.gain");
  EXPECT_EQ(memory_use(Device::cpu).live_by_purpose[int(Purpose::optimizer)] - before, 4 * 64);
  EXPECT_TRUE(Optimizer(config(OptimizerKind::sgd), p.store).state().empty());
  TrainConfig c = config(OptimizerKind::sgd);
  c.momentum = 0.5;
  const Optimizer sgd(c, p.store);
  ASSERT_EQ(sgd.state().size(), 2u);
  EXPECT_EQ(sgd.state()[1].name, "sgd.momentum.gain");
}

}  // namespace
}  // namespace heddle::train
