#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mock/mock.h"
#include "ops/copy/copy.h"
#include "ops/random/random.h"
#include "ops/support/cpu/packed_weight.h"
#include "optim/optimizer.h"
#include "recipe/test_toys.h"
#include "tensor/engine.h"

namespace heddle::optim {

using namespace toys;
namespace {

struct Params {
  nn::Parameters store{nn::ParameterOptions{}};
  Tensor matrix = store.root().weight("matrix", {3, 5});
  Tensor gain = store.root().constant("gain", {5}, 1);
};

recipe::TrainConfig config(recipe::OptimizerKind kind) {
  recipe::TrainConfig c = toy_training();
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
  void adamw(const recipe::TrainConfig& c, const Tensor& grad, int step, double rate, double scale,
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
  void sgd(const recipe::TrainConfig& c, const Tensor& grad, double rate, double scale,
           double decay) {
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

void follow_the_book(const recipe::TrainConfig& c) {
  Params p;
  Optimizer optimizer(c, p.store);
  Book matrix(p.matrix), gain(p.gain);
  for (int step = 1; step <= 30; ++step) {
    const auto s = static_cast<std::uint32_t>(step);
    const double rate = 0.1 / step;
    const Tensor dm = gradient(p.matrix, s, 1), dg = gradient(p.gain, s, 2);
    p.matrix.set_grad(dm);
    p.gain.set_grad(dg);
    const Tensor length = optimizer.gradient_norm();
    const double norm = length.item();
    EXPECT_NEAR(norm, norm_of(dm, dg), 1e-6);
    optimizer.step(step, rate, length);
    EXPECT_FALSE(p.matrix.grad().defined());
    const double scale = c.clip > 0 ? std::min(1.0, c.clip / (norm + 1e-6)) : 1;
    if (c.optimizer == recipe::OptimizerKind::adamw) {
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

TEST(Optimizer, AdamWFollowsTheBook) { follow_the_book(config(recipe::OptimizerKind::adamw)); }

TEST(Optimizer, SgdFollowsTheBook) {
  recipe::TrainConfig c = config(recipe::OptimizerKind::sgd);
  follow_the_book(c);
  c.momentum = 0.9;
  follow_the_book(c);
  c.nesterov = true;
  c.clip = 0;
  follow_the_book(c);
}

TEST(Optimizer, PacksWeightsWithTheirUpdate) {
  for (const auto kind : {recipe::OptimizerKind::adamw, recipe::OptimizerKind::sgd}) {
    Params p;
    Optimizer optimizer(config(kind), p.store);
    const Tensor packed = cpu::packed_weight(p.matrix, DType::f32);
    const std::uint64_t before = packed.version();
    p.matrix.set_grad(gradient(p.matrix, 1, 1));
    optimizer.step(1, 0.1, optimizer.gradient_norm());
    const std::uint64_t after = packed.version();
    EXPECT_GT(after, before);
    const Tensor fresh = cpu::packed_weight(ops::clone(p.matrix), DType::f32);
    EXPECT_EQ(packed.to_vector<std::uint8_t>(), fresh.to_vector<std::uint8_t>());
    cpu::packed_weight(p.matrix, DType::f32);
    EXPECT_EQ(packed.version(), after);  // not packed again
  }
}

// Nothing has to be read before the update: what is not finite does not get into the weights.
TEST(Optimizer, ANumberThatIsNotFiniteChangesNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto kind : {recipe::OptimizerKind::adamw, recipe::OptimizerKind::sgd})
    for (const double clip : {0.0, 0.7})
      for (const bool in_the_loss : {false, true}) {
        recipe::TrainConfig c = config(kind);
        c.clip = clip;
        c.momentum = 0.9;
        Params p;
        Optimizer optimizer(c, p.store);
        const auto weights = p.matrix.to_vector<float>();
        p.matrix.set_grad(in_the_loss ? gradient(p.matrix, 1, 1) : Tensor::full({3, 5}, inf));
        const Tensor losses[] = {Tensor::scalar(1), Tensor::scalar(in_the_loss ? inf : 2)};
        optimizer.step(1, 0.1, optimizer.gradient_norm(), losses);
        EXPECT_EQ(p.matrix.to_vector<float>(), weights);
        EXPECT_EQ(p.gain.to_vector<float>(), std::vector<float>(5, 1));
        for (const nn::Parameter& s : optimizer.state())
          EXPECT_EQ(s.tensor.to_vector<float>(),
                    std::vector<float>(static_cast<std::size_t>(s.tensor.elements()), 0))
              << s.name;
      }
}

// A device that has none of the fused routines computes the references, and nothing is read.
TEST(Optimizer, OnAnotherDeviceStepsAreTheSameAndNothingIsRead) {
  for (const auto kind : {recipe::OptimizerKind::adamw, recipe::OptimizerKind::sgd}) {
    recipe::TrainConfig c = config(kind);
    c.momentum = 0.9;
    Params here;
    nn::Parameters store{nn::ParameterOptions{.device = mock::device()}};
    Tensor matrix = store.root().weight("matrix", {3, 5});
    Tensor gain = store.root().constant("gain", {5}, 1);
    Optimizer ours(c, here.store), theirs(c, store);
    for (int step = 1; step <= 4; ++step) {
      const auto s = static_cast<std::uint32_t>(step);
      const Tensor dm = gradient(here.matrix, s, 1), dg = gradient(here.gain, s, 2);
      here.matrix.set_grad(dm);
      here.gain.set_grad(dg);
      matrix.set_grad(dm.to(mock::device()));
      gain.set_grad(dg.to(mock::device()));
      // The loss of step 3 is not finite: on both it is as if the step had not been.
      const Tensor loss = Tensor::scalar(step == 3 ? std::nan("") : 1.5);
      const Tensor loss_there = loss.to(mock::device());
      ours.step(step, 0.1, ours.gradient_norm(), std::span(&loss, 1));
      const std::int64_t reads = device_reads();
      theirs.step(step, 0.1, theirs.gradient_norm(), std::span(&loss_there, 1));
      EXPECT_EQ(device_reads(), reads);
    }
    const auto expect_near = [](const Tensor& a, const Tensor& b) {
      const auto x = a.to_vector<float>(), y = b.to_vector<float>();
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << i;
    };
    expect_near(here.matrix, matrix);
    expect_near(here.gain, gain);
    EXPECT_GT(std::abs(here.gain.to_vector<float>()[0] - 1), 0.01);
  }
}

// A batch in which nothing counts leaves no gradients: the norm is 0, where the parameters are.
TEST(Optimizer, TheNormOfNoGradientsIsZero) {
  Params p;
  EXPECT_EQ(Optimizer(config(recipe::OptimizerKind::adamw), p.store).gradient_norm().item(), 0);
  nn::Parameters planned{nn::ParameterOptions{.device = Device::meta}};
  planned.root().weight("matrix", {3, 5});
  const Optimizer optimizer(config(recipe::OptimizerKind::adamw), planned);
  EXPECT_EQ(optimizer.gradient_norm().device(), Device::meta);
}

TEST(Optimizer, AMissingGradientIsZero) {
  for (const auto kind : {recipe::OptimizerKind::adamw, recipe::OptimizerKind::sgd}) {
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
  const Optimizer adamw(config(recipe::OptimizerKind::adamw), p.store);
  ASSERT_EQ(adamw.state().size(), 4u);
  EXPECT_EQ(adamw.state()[0].name, "adamw.m.matrix");
  EXPECT_EQ(adamw.state()[3].name, "adamw.v.gain");
  EXPECT_EQ(memory_use(Device::cpu).live_by_purpose[int(Purpose::optimizer)] - before, 4 * 64);
  EXPECT_TRUE(Optimizer(config(recipe::OptimizerKind::sgd), p.store).state().empty());
  recipe::TrainConfig c = config(recipe::OptimizerKind::sgd);
  c.momentum = 0.5;
  const Optimizer sgd(c, p.store);
  ASSERT_EQ(sgd.state().size(), 2u);
  EXPECT_EQ(sgd.state()[1].name, "sgd.momentum.gain");
}

}  // namespace
}  // namespace heddle::optim
