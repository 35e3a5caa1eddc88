// Steps whose work a device may repeat have the bits of steps that run as usual. The mock device
// cannot record, so here every step goes through the held batch and is run; that recorded launches
// give the same bytes is for a GPU to show.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "backend/repeat.h"
#include "mock/mock.h"
#include "model/test_support.h"
#include "optim/optimizer.h"
#include "optim/repeated_step.h"
#include "recipe/test_toys.h"

namespace heddle::optim {
namespace repeated {
namespace {

using model::Kind;
using model::Task;

recipe::TrainConfig training() {
  recipe::TrainConfig c = toys::toy_training();
  c.accumulate = 1;
  return c;
}

// The batch of a step: other numbers every time, and at step 4 another shape.
model::Batch batch_of(const model::ModelConfig& config, std::int64_t step) {
  model::Batch b;
  const auto stream = static_cast<std::uint32_t>(step);
  const std::int64_t rows = step == 4 ? 1 : 3;
  if (config.kind == Kind::vit) {
    b.images =
        ops::random_normal({rows, config.sizes.channels, config.sizes.height, config.sizes.width},
                           0, 1, {5, 1, stream});
    b.targets = model::random_ids({rows}, config.sizes.classes, stream);
  } else {
    b.tokens = model::random_ids({rows, 6}, config.sizes.vocabulary, stream);
    b.targets = model::random_ids({rows, 6}, config.sizes.vocabulary, stream + 100);
  }
  b.counted = b.targets.elements();
  return b;
}

std::unique_ptr<model::Model> built(const model::ModelConfig& config) {
  return model::build_model(config, {.seed = 3, .device = mock::device()});
}

class RepeatedSteps : public testing::TestWithParam<std::pair<Kind, Task>> {};

TEST_P(RepeatedSteps, HaveTheBitsOfUsualOnes) {
  const backend::RepeatsEverywhere repeats;
  model::ModelConfig config = model::small(GetParam().first, GetParam().second);
  config.dropout = 0.2;
  const auto usual = built(config), held = built(config);
  const recipe::TrainConfig c = training();
  Optimizer for_usual(c, usual->parameters()), for_held(c, held->parameters());
  RepeatedStep steps;
  for (std::int64_t step = 1; step <= 6; ++step) {
    SCOPED_TRACE(step);
    const model::Batch batch = batch_of(config, step);
    const StepSums wanted = add_gradients(*usual, batch, c, step);
    const StepSums got = steps.gradients(*held, batch, c, step);
    EXPECT_EQ(got.loss(), wanted.loss());
    EXPECT_EQ(got.counted, wanted.counted);
    for_usual.step(step, 1e-2, for_usual.gradient_norm(), wanted.losses);
    for_held.step(step, 1e-2, for_held.gradient_norm(), got.losses);
    for (std::size_t i = 0; i < usual->parameters().all().size(); ++i) {
      const nn::Parameter& p = usual->parameters().all()[i];
      EXPECT_EQ(held->parameters().all()[i].tensor.to_vector<float>(), p.tensor.to_vector<float>())
          << p.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RepeatedSteps,
                         testing::Values(std::pair{Kind::decoder, Task::language},
                                         std::pair{Kind::vit, Task::classify}));

// A repeated step does not look at ids, so they are checked where they enter.
TEST(RepeatedStep, RefusesIdsThatThereAreNot) {
  const backend::RepeatsEverywhere repeats;
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const auto model = built(config);
  const recipe::TrainConfig c = training();
  RepeatedStep steps;
  for (std::int64_t step = 1; step <= 2; ++step) {
    steps.gradients(*model, batch_of(config, step), c, step);
    for (nn::Parameter& p : model->parameters().all()) p.tensor.clear_grad();
  }
  model::Batch bad = batch_of(config, 3);
  bad.tokens.mutable_data<std::int32_t>()[4] = static_cast<std::int32_t>(config.sizes.vocabulary);
  EXPECT_THROW(steps.gradients(*model, bad, c, 3), Error);
}

// A batch without targets has no loss to repeat.
TEST(RepeatedStep, ABatchThatCountsNothingIsTakenAsUsual) {
  const backend::RepeatsEverywhere repeats;
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const auto model = built(config);
  const recipe::TrainConfig c = training();
  RepeatedStep steps;
  steps.gradients(*model, batch_of(config, 1), c, 1);
  for (nn::Parameter& p : model->parameters().all()) p.tensor.clear_grad();
  model::Batch none = batch_of(config, 2);
  none.counted = 0;
  EXPECT_EQ(steps.gradients(*model, none, c, 2).counted, 0);
}

}  // namespace
}  // namespace repeated
}  // namespace heddle::optim
