// Shared by the tests of models: small models, random batches, derivatives of a whole loss.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/ops.h"
#include "heddle/tape.h"
#include "model/model.h"

namespace heddle::model {

using Doubles = std::vector<double>;

inline Doubles doubles(const Tensor& t) {
  return ops::cast(t.detach(), DType::f64).to_vector<double>();
}

inline double distance(const Tensor& a, const Tensor& b) {
  const Doubles x = doubles(a), y = doubles(b);
  EXPECT_EQ(x.size(), y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) return INFINITY;
    most = std::max(most, std::abs(x[i] - y[i]));
  }
  return most;
}

// Integers in [0, limit).
inline Tensor random_ids(const Shape& shape, std::int64_t limit, std::uint32_t stream) {
  const Tensor u =
      ops::random_uniform(shape, 0, static_cast<double>(limit), {5, 1, stream}, DType::f64);
  Doubles values = u.to_vector<double>();
  std::vector<std::int32_t> ids;
  for (const double v : values)
    ids.push_back(static_cast<std::int32_t>(std::min(v, static_cast<double>(limit) - 1)));
  return Tensor::from<std::int32_t>(shape, std::span<const std::int32_t>(ids));
}

inline Tensor lengths_of(std::initializer_list<std::int64_t> lengths) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(lengths.size())}, lengths);
}

struct Variant {
  std::string name;
  ModelConfig config;
};

// The complaint of validate(); empty: none.
inline std::string refusal(const ModelConfig& c) {
  try {
    validate(c);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline ModelConfig small(Kind kind, Task task) {
  ModelConfig c;
  c.kind = kind;
  c.task = task;
  c.layers = 2;
  c.width = 8;
  c.sizes.vocabulary = 11;
  c.sizes.context = 6;
  if (task == Task::tag || task == Task::classify) c.sizes.classes = 5;
  c.init = nn::InitRule::fan_in;
  if (kind == Kind::vit) {
    c.sizes = {};
    c.sizes.classes = 5;
    c.sizes.channels = 2;
    c.sizes.height = 4;
    c.sizes.width = 6;
    c.patch = 2;
  }
  if (!c.recurrent()) c.attention.heads = 2;
  return c;
}

// Two sequences; the second is shorter.
inline Batch random_batch(const ModelConfig& c) {
  Batch b;
  const std::int64_t t = c.sizes.context;
  if (c.kind == Kind::vit) {
    b.images =
        ops::random_normal({2, c.sizes.channels, c.sizes.height, c.sizes.width}, 0, 1, {5, 1, 9});
    b.targets = random_ids({2}, c.sizes.classes, 2);
    b.counted = 2;
    return b;
  }
  b.tokens = random_ids({2, t}, c.sizes.vocabulary, 1);
  b.lengths = lengths_of({t, t - 2});
  const std::int64_t out = c.sizes.classes > 0 ? c.sizes.classes : c.vocabulary_of_target();
  b.targets = c.task == Task::classify ? random_ids({2}, out, 2) : random_ids({2, t}, out, 2);
  b.counted = b.targets.elements();
  if (c.task == Task::classify) return b;
  auto* targets = b.targets.mutable_data<std::int32_t>();
  targets[2 * t - 1] = targets[2 * t - 2] = kIgnore;
  b.counted -= 2;
  if (c.task == Task::language) b.lengths = {};
  if (c.attention.prefix) b.prefix_lengths = lengths_of({2, 1});
  if (c.task == Task::translate) {
    b.target_tokens = random_ids({2, t}, out, 3);
    b.target_lengths = lengths_of({t, t - 2});
  }
  return b;
}

inline std::unique_ptr<Model> build_random(const ModelConfig& c, DType dtype) {
  BuildOptions options;
  options.dtype = dtype;
  options.seed = 3;
  std::unique_ptr<Model> model = build_model(c, options);
  // Biases and gains that are 0 and 1 hide mistakes.
  std::uint32_t stream = 100;
  for (nn::Parameter& p : model->parameters().all()) {
    if (p.tensor.rank() == 1)
      ops::copy_into(p.tensor,
                     ops::random_normal(p.tensor.shape(), 0.5, 0.5, {9, 0, stream}, dtype));
    ++stream;
  }
  return model;
}

inline std::unique_ptr<Model> build_f64(const ModelConfig& c) {
  return build_random(c, DType::f64);
}

inline nn::Pass pass_in(DType precision) {
  nn::Pass pass;
  pass.precision = precision;
  return pass;
}

inline nn::Pass pass_f64() { return pass_in(DType::f64); }

// The loss's derivative along a random direction of all parameters: by the tape, and by central
// differences.
inline void expect_gradient(Model& model, const Batch& batch, const nn::Pass& pass,
                            const std::string& name) {
  auto& all = model.parameters().all();
  for (nn::Parameter& p : all) p.tensor.clear_grad();
  {
    Tape tape;
    tape.backward(model.loss(batch, pass, 0.1).total);
  }
  std::vector<Tensor> start, direction;
  double by_tape = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Tensor& p = all[i].tensor;
    // An expert that no token chose has none, nor has what only chooses experts.
    const bool idle =
        !p.grad().defined() && (all[i].name.find("experts") != std::string::npos ||
                                all[i].name.find("router.correction") != std::string::npos);
    ASSERT_TRUE(p.grad().defined() || idle) << name << ": no gradient of " << all[i].name;
    start.push_back(ops::clone(p.detach()));
    direction.push_back(
        ops::random_normal(p.shape(), 0, 1, {8, 0, static_cast<std::uint32_t>(i)}, DType::f64));
    if (!idle) by_tape += ops::sum_all(ops::mul(direction[i], p.grad())).item();
  }
  const NoGrad no_grad;
  const auto at = [&](double step) {
    for (std::size_t i = 0; i < all.size(); ++i)
      ops::copy_into(all[i].tensor, ops::add(start[i], ops::scale(direction[i], step)));
    return model.loss(batch, pass, 0.1).total.item();
  };
  const double h = 1e-6;  // short, because relu has kinks: 1e-5 met one
  const double wide = (at(2 * h) - at(-2 * h)) / (4 * h), narrow = (at(h) - at(-h)) / (2 * h);
  const double by_difference = (4 * narrow - wide) / 3;
  at(0);
  EXPECT_NEAR(by_tape, by_difference, 1e-6 * std::max(1.0, std::abs(by_difference))) << name;
}

// The same key gives the same loss, another step another one; the gradient is that of the dropped
// model.
inline void expect_dropout(const ModelConfig& config, const std::string& name) {
  const auto model = build_f64(config);
  nn::Pass pass = pass_f64();
  const Batch batch = random_batch(config);
  const double certain = model->loss(batch, pass, 0).total.item();
  pass.random = RandomKey{1, 7, 0};
  const double first = model->loss(batch, pass, 0).total.item();
  EXPECT_EQ(first, model->loss(batch, pass, 0).total.item()) << name;
  EXPECT_NE(first, certain) << name;
  pass.random->step = 8;
  EXPECT_NE(first, model->loss(batch, pass, 0).total.item()) << name;
  expect_gradient(*model, batch, pass, name + " with dropout");
}

// Recomputed activations give the same loss and the same gradients, up to `tolerance`: what several
// layers look at gets its gradient in another order of summation.
inline void expect_recomputation(const ModelConfig& config, const std::string& name,
                                 double tolerance) {
  const auto model = build_f64(config);
  const Batch batch = random_batch(config);
  std::vector<Doubles> gradients[2];
  double losses[2] = {0, 0};
  for (const bool again : {false, true}) {
    nn::Pass pass = pass_f64();
    pass.random = RandomKey{1, 7, 0};
    pass.recompute = again;
    for (nn::Parameter& p : model->parameters().all()) p.tensor.clear_grad();
    Tape tape;
    const Tensor loss = model->loss(batch, pass, 0).total;
    losses[again] = loss.item();
    tape.backward(loss);
    for (nn::Parameter& p : model->parameters().all())
      if (p.tensor.grad().defined()) gradients[again].push_back(doubles(p.tensor.grad()));
  }
  EXPECT_EQ(losses[0], losses[1]) << name;
  ASSERT_EQ(gradients[0].size(), gradients[1].size()) << name;
  for (std::size_t i = 0; i < gradients[0].size(); ++i)
    for (std::size_t j = 0; j < gradients[0][i].size(); ++j)
      ASSERT_NEAR(gradients[0][i][j], gradients[1][i][j], tolerance)
          << name << " " << model->parameters().all()[i].name;
}

}  // namespace heddle::model
