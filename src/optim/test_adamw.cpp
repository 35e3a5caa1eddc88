#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heddle/tape.h"
#include "nn/linear/linear.h"
#include "ops/binary/binary.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "optim/adamw.h"
#include "optim/optimizer.h"
#include "recipe/train_config.h"

namespace heddle::optim {
namespace {

// One parameter w = [1, 2] whose gradient is w itself: loss = ½ Σ w².
struct Bowl {
  nn::Parameters parameters{nn::ParameterOptions{}};
  Tensor w;

  Bowl() : w(parameters.root().zeros("w", {2})) { overwrite(w, Tensor::from({1, 2})); }
  void differentiate() const {
    Tape tape;
    tape.backward(ops::scale(ops::sum_all(ops::mul(w, w)), 0.5));
  }
  std::vector<float> values() const { return w.to_vector<float>(); }
};

TEST(Sgd, GoesDownTheGradientAndTellsItsLength) {
  Bowl bowl;
  Sgd sgd(bowl.parameters, {.rate = 0.5});
  bowl.differentiate();
  EXPECT_NEAR(sgd.step().item(), std::sqrt(5.0), 1e-6);
  EXPECT_EQ(bowl.values(), (std::vector<float>{0.5f, 1}));
  EXPECT_FALSE(bowl.w.grad().defined());
  bowl.differentiate();
  sgd.step(0.25);  // another rate for one step
  EXPECT_EQ(bowl.values(), (std::vector<float>{0.375f, 0.75f}));
  bowl.differentiate();
  sgd.step();  // and the first one again
  EXPECT_EQ(bowl.values(), (std::vector<float>{0.1875f, 0.375f}));
  EXPECT_EQ(sgd.steps(), 3);
}

TEST(Sgd, ClipsAndHasMomentum) {
  Bowl bowl;
  Sgd sgd(bowl.parameters, {.rate = 1, .clip = std::sqrt(5.0) / 2});
  bowl.differentiate();
  sgd.step();
  EXPECT_NEAR(bowl.values()[1], 1, 1e-6) << "half of the gradient";
  Bowl other;
  Sgd heavy(other.parameters, {.rate = 0.5, .momentum = 0.5});
  other.differentiate();
  heavy.step();  // w = 0.5
  other.differentiate();
  heavy.step();  // velocity 0.5 · 1 + 0.5 = 1: w = 0.5 - 0.5 · 1
  EXPECT_NEAR(other.values()[0], 0, 1e-6);
}

// Every number of the configuration reaches the update: the trainer's own optimiser with the same
// numbers gives the same bits, and with any other number it does not.
TEST(AdamW, IsTheTrainersOptimizer) {
  const AdamWConfig ours{.rate = 0.1, .beta1 = 0.7, .beta2 = 0.9, .epsilon = 1e-2, .clip = 1.5};
  Bowl a, b;
  AdamW adamw(a.parameters, ours);
  recipe::TrainConfig c;
  c.learning_rate = 0.1;
  c.beta1 = 0.7;
  c.beta2 = 0.9;
  c.epsilon = 1e-2;
  c.clip = 1.5;
  Optimizer theirs(c, b.parameters);
  for (int step = 1; step <= 3; ++step) {
    a.differentiate();
    adamw.step();
    b.differentiate();
    theirs.step(step, 0.1, theirs.gradient_norm());
    EXPECT_EQ(a.values(), b.values()) << step;
  }
  const auto after_three = [](const AdamWConfig& config) {
    Bowl bowl;
    AdamW optimizer(bowl.parameters, config);
    for (int i = 0; i < 3; ++i) {
      bowl.differentiate();
      optimizer.step();
    }
    return bowl.values();
  };
  const std::vector<float> usual = after_three(ours);
  for (double AdamWConfig::* number : {&AdamWConfig::rate, &AdamWConfig::beta1, &AdamWConfig::beta2,
                                       &AdamWConfig::epsilon, &AdamWConfig::clip}) {
    AdamWConfig other = ours;
    other.*number *= 0.5;
    EXPECT_NE(after_three(other), usual);
  }
}

TEST(AdamW, DecaysMatricesAlone) {
  nn::Parameters parameters({.seed = 1});
  const nn::Linear layer({.inputs = 2, .outputs = 3}, parameters.root());
  overwrite(parameters.all()[1].tensor, Tensor::from({1, 1, 1}));
  const float before = layer.weight().to_vector<float>()[0];
  AdamW adamw(parameters, {.rate = 0.5, .weight_decay = 0.5});
  adamw.step();  // no gradient: only the decay is left
  EXPECT_FLOAT_EQ(layer.weight().to_vector<float>()[0], 0.75f * before);
  EXPECT_EQ(layer.bias().to_vector<float>()[0], 1);
}

TEST(AdamW, RefusesWhatMakesNoSense) {
  Bowl bowl;
  EXPECT_THROW(AdamW(bowl.parameters, {.beta1 = 1.5}), Error);
  EXPECT_THROW(AdamW(bowl.parameters, {.rate = -1}), Error);
  EXPECT_THROW(Sgd(bowl.parameters, {.momentum = 2}), Error);
}

TEST(AdamW, AGradientThatIsNotFiniteChangesNothing) {
  Bowl bowl;
  AdamW adamw(bowl.parameters);
  bowl.w.set_grad(Tensor::from<float>({2}, {std::numeric_limits<float>::quiet_NaN(), 1}));
  adamw.step();
  EXPECT_EQ(bowl.values(), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace heddle::optim
