#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <optional>

#include "distributed/test_threads.h"
#include "model/test_support.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "optim/group_step.h"
#include "optim/schedule.h"
#include "optim/step.h"
#include "recipe/test_toys.h"

namespace heddle::optim {

using namespace toys;
namespace {

using distributed::Communicator;
using model::Kind, model::Task;

// Eight sequences, no two alike.
model::Batch batch_of_eight(const model::ModelConfig& config) {
  const model::Batch two = model::random_batch(config);
  model::Batch eight;
  for (const auto member : model::kBatchTensors) {
    if (!(two.*member).defined()) continue;
    std::vector<Tensor> copies;
    for (std::int32_t i = 0; i < 4; ++i) {
      Tensor copy = ops::clone(two.*member);
      if (member == &model::Batch::tokens)
        for (std::int64_t j = 0; j < copy.elements(); ++j) {
          auto& token = copy.mutable_data<std::int32_t>()[j];
          token = static_cast<std::int32_t>((token + i) % config.sizes.vocabulary);
        }
      if (member == &model::Batch::images)
        for (std::int64_t j = 0; j < copy.elements(); ++j)
          copy.mutable_data<float>()[j] *= 1.0F + 0.25F * static_cast<float>(i);
      copies.push_back(copy);
    }
    eight.*member = ops::concat(copies, 0);
  }
  eight.counted = 4 * two.counted;
  return eight;
}

struct Result {
  std::vector<std::vector<float>> weights, state;
  std::vector<double> losses, norms;

  bool operator==(const Result&) const = default;
};

std::vector<std::vector<float>> values(const std::vector<nn::Parameter>& all) {
  std::vector<std::vector<float>> numbers;
  for (const nn::Parameter& p : all) numbers.push_back(p.tensor.to_vector<float>());
  return numbers;
}

// Small enough for several of them in these models, and for tables that are cut.
constexpr std::int64_t kSmallBucket = 1100;

// Three steps of so many ranks; where `moved` is not 0, the last one by so many, from the state of
// the others, and with the shards of `then`.
Result train_on(int ranks, const model::ModelConfig& model, const recipe::TrainConfig& config,
                int moved = 0, std::optional<recipe::Shard> then = {}) {
  const model::Batch batch = batch_of_eight(model);
  Result result;
  std::vector<nn::Parameter> weights, state;
  const auto steps = [&](int group_size, std::int64_t first, std::int64_t last) {
    std::vector<nn::Parameter> end;
    distributed::as_ranks(group_size, [&](Communicator& group) {
      // As in a run, the others get the weights of rank 0.
      const auto own = model::build_model(model, {.seed = group.is_first() ? 1U : 2U});
      recipe::TrainConfig here = config;
      if (first > 1) here.shard = then.value_or(config.shard);
      GroupStep step(here, own->parameters(), group, kSmallBucket);
      if (first > 1 && group.is_first())
        for (std::size_t i = 0; i < weights.size(); ++i)
          overwrite(own->parameters().all()[i].tensor, weights[i].tensor);
      step.share_weights();
      if (first > 1) step.set_state(group.is_first() ? state : std::vector<nn::Parameter>());
      for (std::int64_t i = first; i <= last; ++i) {
        const auto numbers = step.take(*own, batch, i, learning_rate_at(config, i));
        if (!group.is_first()) continue;
        result.losses.push_back(numbers.loss);
        result.norms.push_back(numbers.norm);
      }
      const auto all = step.state();
      if (!group.is_first()) {
        EXPECT_TRUE(all.empty());
        return;
      }
      end = all;
      weights.clear();
      for (const nn::Parameter& p : own->parameters().all()) weights.push_back(p);
    });
    state = end;
  };
  steps(ranks, 1, moved == 0 ? 3 : 2);
  if (moved != 0) steps(moved, 3, 3);
  result.weights = values(weights);
  result.state = values(state);
  return result;
}

recipe::TrainConfig config_in(std::int64_t parts) {
  recipe::TrainConfig c = toy_training();
  c.batch = 8;
  c.parts = parts;
  c.clip = 0.5;  // so that the norm matters
  return c;
}

void expect_same(const Result& one, const Result& other) {
  EXPECT_EQ(one.losses, other.losses);
  EXPECT_EQ(one.norms, other.norms);
  EXPECT_TRUE(one.weights == other.weights);
  EXPECT_TRUE(one.state == other.state);
}

TEST(GroupStep, EveryKindHasTheSameBitsOnAnyNumberOfRanks) {
  const std::vector<std::pair<Kind, Task>> kinds = {
      {Kind::decoder, Task::language},     {Kind::encoder, Task::tag},
      {Kind::encoder, Task::classify},     {Kind::encoder, Task::masked},
      {Kind::vit, Task::classify},         {Kind::encoder_decoder, Task::translate},
      {Kind::rnn, Task::language},         {Kind::birnn, Task::tag},
      {Kind::rnn_seq2seq, Task::translate}};
  for (const auto& [kind, task] : kinds)
    for (const bool experts : {false, true}) {
      model::ModelConfig model = model::small(kind, task);
      if (experts && model.recurrent()) continue;
      model.dropout = 0.2;
      // A capacity, so that tokens of a part compete for experts.
      if (experts) model.moe = nn::MoeOptions{.experts = 4, .capacity = 1.0, .balance = 0.1};
      SCOPED_TRACE(std::string(to_string(kind)) + " " + std::string(to_string(task)) +
                   (experts ? " with experts" : ""));
      const recipe::TrainConfig config = config_in(3);
      const Result one = train_on(1, model, config);
      for (const int ranks : {2, 3, 4}) expect_same(train_on(ranks, model, config), one);
    }
}

TEST(GroupStep, PartsAndMovesAndOptimisers) {
  model::ModelConfig model = model::small(Kind::decoder, Task::language);
  model.dropout = 0.1;
  for (const std::int64_t parts : {1, 2, 4, 8})
    for (const bool adamw : {true, false}) {
      SCOPED_TRACE(std::to_string(parts) + " parts");
      recipe::TrainConfig config = config_in(parts);
      config.precision = DType::bf16;
      if (!adamw) {
        config.optimizer = recipe::OptimizerKind::sgd;
        config.momentum = parts == 2 ? 0 : 0.9;
        config.weight_decay = 0;
      }
      const Result one = train_on(1, model, config);
      for (const int ranks : {2, 5, 8}) expect_same(train_on(ranks, model, config), one);
      expect_same(train_on(4, model, config, 1), one);
      expect_same(train_on(1, model, config, 3), one);
      expect_same(train_on(2, model, config, 8), one);
    }
}

// Every kind, with dropout and with experts some of which get no token: what is sharded changes no
// bit, also where layers are computed twice and where parts have parts of their own.
TEST(GroupStep, ShardedGradientsHaveTheSameBits) {
  const std::vector<std::pair<Kind, Task>> kinds = {
      {Kind::decoder, Task::language},     {Kind::encoder, Task::tag},
      {Kind::encoder, Task::classify},     {Kind::encoder, Task::masked},
      {Kind::vit, Task::classify},         {Kind::encoder_decoder, Task::translate},
      {Kind::rnn, Task::language},         {Kind::birnn, Task::tag},
      {Kind::rnn_seq2seq, Task::translate}};
  for (const auto& [kind, task] : kinds)
    for (const bool experts : {false, true}) {
      model::ModelConfig model = model::small(kind, task);
      if (experts && model.recurrent()) continue;
      model.dropout = 0.2;
      if (experts) model.moe = nn::MoeOptions{.experts = 8, .capacity = 1.0, .balance = 0.1};
      SCOPED_TRACE(std::string(to_string(kind)) + " " + std::string(to_string(task)) +
                   (experts ? " with experts" : ""));
      recipe::TrainConfig config = config_in(experts ? 3 : 8);
      config.accumulate = experts ? 2 : 1;
      const Result one = train_on(1, model, config);
      config.shard = recipe::Shard::gradients;
      for (const bool recompute : {false, true}) {
        SCOPED_TRACE(recompute);
        config.recompute = recompute;
        for (const int ranks : {1, 2, 3, 4, 8}) expect_same(train_on(ranks, model, config), one);
      }
    }
}

TEST(GroupStep, ShardsMayChangeOnTheWay) {
  model::ModelConfig model = model::small(Kind::decoder, Task::language);
  model.dropout = 0.1;
  for (const std::int64_t parts : {1, 2, 5, 8}) {
    SCOPED_TRACE(std::to_string(parts) + " parts");
    recipe::TrainConfig config = config_in(parts);
    config.precision = DType::bf16;
    if (parts == 2) {
      config.optimizer = recipe::OptimizerKind::sgd;
      config.momentum = 0.9;
      config.weight_decay = 0;
    }
    const Result one = train_on(1, model, config);
    expect_same(train_on(2, model, config, 3, recipe::Shard::gradients), one);
    config.shard = recipe::Shard::gradients;
    expect_same(train_on(3, model, config, 2, recipe::Shard::optimizer), one);
    expect_same(train_on(8, model, config, 1), one);
    expect_same(train_on(1, model, config, 4), one);
  }
}

// The parts are those of train.accumulate, weighed alike: the sum differs in its order alone.
TEST(GroupStep, TheGradientIsThatOfTheWholeBatch) {
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const model::Batch batch = batch_of_eight(config);
  recipe::TrainConfig plain = toy_training();
  // The first step of AdamW goes by signs, whatever the size of a gradient.
  plain.optimizer = recipe::OptimizerKind::sgd;
  const auto model = model::build_model(config, {.seed = 1});
  const double loss = add_gradients(*model, batch, plain, 1).loss();
  Optimizer optimizer(plain, model->parameters());
  const double norm = optimizer.gradient_norm().item();
  optimizer.step(1, 0.01, Tensor::scalar(norm, DType::f64));
  const auto expected = weights_of(*model);
  for (const std::int64_t parts : {1, 2, 3}) {
    plain.parts = parts;
    const auto other = model::build_model(config, {.seed = 1});
    Communicator alone;
    GroupStep step(plain, other->parameters(), alone);
    const auto numbers = step.take(*other, batch, 1, 0.01);
    EXPECT_NEAR(numbers.loss, loss, 1e-6);
    EXPECT_NEAR(numbers.norm, norm, 1e-5 * norm);
    const auto got = weights_of(*other);
    for (std::size_t i = 0; i < got.size(); ++i)
      for (std::size_t j = 0; j < got[i].size(); ++j)
        EXPECT_NEAR(got[i][j], expected[i][j], 1e-6) << i << " " << j;
  }
}

TEST(GroupStep, ANumberThatIsNotFiniteChangesNothing) {
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const model::Batch batch = batch_of_eight(config);
  recipe::TrainConfig c = config_in(2);
  distributed::as_ranks(2, [&](Communicator& group) {
    const auto model = model::build_model(config, {.seed = 1});
    model->parameters().all().back().tensor.mutable_data<float>()[0] = INFINITY;
    GroupStep step(c, model->parameters(), group);
    const auto before = weights_of(*model);
    const auto numbers = step.take(*model, batch, 1, 0.01);
    EXPECT_FALSE(std::isfinite(numbers.loss) && std::isfinite(numbers.norm));
    EXPECT_TRUE(weights_of(*model) == before);
  });
}

// What a plan says is sent is sent, but for a few numbers about losses and lengths.
TEST(GroupStep, TrafficIsAsPlanned) {
  model::ModelConfig config = model::small(Kind::decoder, Task::language);
  config.width = 32;
  const model::Batch batch = batch_of_eight(config);
  recipe::TrainConfig c = config_in(8);
  for (const auto shard : {recipe::Shard::optimizer, recipe::Shard::gradients})
    for (const int ranks : {2, 3, 4}) {
      c.shard = shard;
      std::atomic<std::int64_t> planned = 0, counted = 0;
      const auto bytes = [&](std::int64_t steps) {
        planned = counted = 0;
        return distributed::as_ranks(ranks, [&](Communicator& group) {
          const auto model = model::build_model(config, {.seed = 1});
          GroupStep step(c, model->parameters(), group, kSmallBucket);
          planned += step.traffic();
          for (std::int64_t i = 1; i <= steps; ++i) {
            (void)group.take_traffic();
            step.take(*model, batch, i, 0.01);
          }
          counted += group.take_traffic().sent;  // in the last one
        });
      };
      const std::int64_t one = bytes(1), two = bytes(2);
      EXPECT_EQ(counted, two - one);
      EXPECT_NEAR(static_cast<double>(two - one), static_cast<double>(planned.load()),
                  0.02 * static_cast<double>(planned.load()));
    }
}

// With a part for each rank nothing more travels than with shards of the optimiser alone.
TEST(GroupStep, APartForEachRankTravelsOnce) {
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const auto model = model::build_model(config, {.seed = 1});
  recipe::TrainConfig c = config_in(4);
  const auto bytes = [&](recipe::Shard shard) {
    c.shard = shard;
    Communicator group = Communicator::planned(0, 4);
    return GroupStep(c, model->parameters(), group).traffic();
  };
  EXPECT_NEAR(static_cast<double>(bytes(recipe::Shard::gradients)),
              static_cast<double>(bytes(recipe::Shard::optimizer)), 8.0 * 4 * distributed::kPiece);
  const std::int64_t once = bytes(recipe::Shard::gradients);
  c.parts = 8;  // each of the two parts of a rank travels
  EXPECT_GT(bytes(recipe::Shard::gradients), once + once / 3);
}

}  // namespace
}  // namespace heddle::optim
