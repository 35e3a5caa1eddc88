#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process_memory.h"
#include "heddle/cost.h"
#include "heddle/ops.h"
#include "heddle/runtime.h"
#include "model/model.h"
#include "model/test_axes.h"
#include "optim/optimizer.h"
#include "optim/step.h"
#include "plan/plan.h"
#include "plan/plan_run.h"
#include "plan/process.h"
#include "recipe/recipe.h"
#include "recipe/test_toys.h"

namespace heddle::plan {

using namespace toys;
namespace {

model::ModelConfig small_decoder() {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 32;
  c.attention.heads = 4;
  c.attention.kv_heads = 2;
  c.attention.position = nn::RopePosition{};
  c.sizes.vocabulary = 100;
  c.sizes.context = 24;
  return c;
}

recipe::TrainConfig config_for(std::int64_t batch) {
  recipe::TrainConfig c;
  c.steps = 10;
  c.batch = batch;
  return c;
}

struct Measured {
  std::int64_t peak = 0;
  double flops = 0;
};

using Change = std::function<void(nn::Parameters&)>;

// The same for real: a step that is not the first. `change` is made to the weights before.
Measured measure(const model::ModelConfig& config, const recipe::TrainConfig& train,
                 BatchShape shape, const Change& change = {}) {
  trim_memory();
  const std::int64_t before = memory_use(Device::cpu).live;
  const auto model = model::build_model(config, {.seed = train.seed});
  if (change) change(model->parameters());
  optim::Optimizer optimizer(train, model->parameters());
  const model::Batch shapes = meta_batch(config, shape);
  model::Batch batch;
  const auto zeros = [](const Tensor& like) {
    return like.defined() ? Tensor::zeros(like.shape(), like.dtype()) : Tensor();
  };
  batch.tokens = zeros(shapes.tokens);
  batch.targets = zeros(shapes.targets);
  batch.images = zeros(shapes.images);
  batch.counted = batch.targets.elements();
  optim::add_gradients(*model, batch, train, 1);
  optimizer.step(1, 1e-3, optimizer.gradient_norm());
  reset_peak_memory(Device::cpu);
  const CostMeter meter;
  const optim::StepSums sums = optim::add_gradients(*model, batch, train, 2);
  optimizer.step(2, 1e-3, optimizer.gradient_norm(), sums.losses);
  return {memory_use(Device::cpu).peak - before, meter.cost().flops};
}

TEST(Plan, MemoryAndArithmeticAreThoseOfTheStep) {
  for (const bool bf16 : {false, true})
    for (const bool recompute : {false, true})
      for (const std::int64_t accumulate : {1, 3}) {
        recipe::TrainConfig train = config_for(6);
        train.precision = bf16 ? DType::bf16 : DType::f32;
        train.recompute = recompute;
        train.accumulate = accumulate;
        const BatchShape shape{6, 24, 0};
        const Plan plan = plan_training(small_decoder(), train, shape);
        const Measured real = measure(small_decoder(), train, shape);
        EXPECT_EQ(plan.flops_per_step, real.flops);
        EXPECT_EQ(plan.memory.peak, real.peak);
      }
}

// Every choice of layers and ends, to the byte.
TEST(Plan, ChoicesOfLayersAreBookedAsTheyAreComputed) {
  std::vector<std::pair<std::string, model::ModelConfig>> all;
  model::add_axes(model::Kind::decoder,
                  [&all](const char* name, const std::function<void(model::ModelConfig&)>& change) {
                    model::ModelConfig c = small_decoder();
                    change(c);
                    all.emplace_back(name, c);
                  });
  for (const auto& [name, config] : all) {
    if (config.moe) continue;  // a plan is of the worst routing
    for (const bool bf16 : {false, true}) {
      recipe::TrainConfig train = config_for(6);
      train.precision = bf16 ? DType::bf16 : DType::f32;
      const BatchShape shape{6, 24, 0};
      const Plan plan = plan_training(config, train, shape);
      const Measured real = measure(config, train, shape);
      EXPECT_EQ(plan.flops_per_step, real.flops) << name;
      EXPECT_EQ(plan.memory.peak, real.peak) << name;
    }
  }
}

// Local layers keep their window, global ones all of it.
TEST(Plan, CachesAreThoseOfEachLayer) {
  model::ModelConfig c = small_decoder();
  constexpr std::int64_t kTokens = 100'000;
  const std::int64_t all = cache_bytes(c, DType::f32, kTokens);
  EXPECT_EQ(all, 2 * kTokens * 2 * 2 * 8 * 4);  // layers, keys and values, heads, width, bytes
  const nn::LayerAttention global = nn::layer_part(c.attention);
  nn::LayerAttention local = global;
  local.look_back = 7;
  c.attention_layers = {local, global};
  EXPECT_LT(cache_bytes(c, DType::f32, kTokens), all * 51 / 100);
  EXPECT_GT(cache_bytes(c, DType::f32, kTokens), all / 2);
}

// All tokens of measure() are the same one and go to the same experts: those whose router rows are
// largest along it, whichever way it points.
Change with_router(const std::vector<double>& strength, double sign) {
  return [strength, sign](nn::Parameters& store) {
    for (nn::Parameter& p : store.all()) {
      if (!p.name.ends_with("router.weight")) continue;
      auto* router = p.tensor.mutable_data<float>();  // [E, C]
      const std::int64_t width = p.tensor.size(1);
      for (std::size_t e = 0; e < strength.size(); ++e)
        for (std::int64_t i = 0; i < width; ++i)
          *router++ = static_cast<float>(sign * strength[e] * (i == 0 ? 1 : 0));
    }
  };
}

// The plan is of the routing that needs most: no other has more. (That one has as much to the byte:
// MixtureOfExperts.NoRoutingNeedsMoreThanTheMetaDeviceBooks.)
TEST(Plan, WithExpertsItIsTheMostThatAnyRoutingNeeds) {
  struct Case {
    std::int64_t active;
    std::optional<double> capacity;
    bool recompute;
  };
  for (const Case& which : {Case{1, {}, false}, Case{2, {}, false}, Case{2, 0.5, false},
                            Case{2, 1.25, false}, Case{2, {}, true}, Case{4, {}, false}}) {
    SCOPED_TRACE(std::to_string(which.active) + " active, capacity " +
                 std::to_string(which.capacity.value_or(0)));
    model::ModelConfig c = small_decoder();
    c.moe = nn::MoeOptions{};
    c.moe->experts = 4;
    c.moe->active = which.active;
    c.moe->capacity = which.capacity;
    recipe::TrainConfig train = config_for(6);
    train.recompute = which.recompute;
    const BatchShape shape{6, 24, 0};
    const Plan plan = plan_training(c, train, shape);
    std::int64_t most = 0;
    // The last expert is among the first choices of the first pair, among the last of the second.
    for (const std::vector<double>& strength :
         {std::vector<double>{1, 2, 3, 4}, std::vector<double>{4, 3, 2, 1}})
      for (const double sign : {1.0, -1.0}) {
        const Measured real = measure(c, train, shape, with_router(strength, sign));
        EXPECT_LE(real.peak, plan.memory.peak);
        most = std::max(most, real.peak);
      }
    // As the router was made: more or less at random.
    EXPECT_LE(measure(c, train, shape).peak, plan.memory.peak);
    // Here most experts get nothing, and so have no gradient.
    EXPECT_GE(static_cast<double>(most), 0.8 * static_cast<double>(plan.memory.peak));
  }
}

// Neither memory of tensors nor arithmetic; the buffers of threads do, and are told apart.
TEST(Plan, DoesNotDependOnTheNumberOfThreads) {
  const int before = threads();
  std::vector<Plan> plans;
  std::vector<Measured> real;
  const BatchShape shape{6, 24, 0};
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    plans.push_back(plan_training(small_decoder(), config_for(6), shape));
    real.push_back(measure(small_decoder(), config_for(6), shape));
  }
  set_threads(before);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].memory.peak, plans[0].memory.peak);
    EXPECT_EQ(plans[i].memory.at_peak, plans[0].memory.at_peak);
    EXPECT_EQ(real[i].peak, plans[0].memory.peak);
  }
  EXPECT_GT(plans[0].memory.thread_buffers_peak, 0);
  EXPECT_EQ(plans[2].memory.thread_buffers_peak, 5 * plans[0].memory.thread_buffers_peak);
}

// Sources of one length and targets that are longer late in an epoch.
class LateTargets final : public EmptyData {
 public:
  std::int64_t epoch_steps(std::int64_t) const override { return 40; }
  BatchShape training_shape(std::int64_t step, std::int64_t batch, std::uint64_t) const override {
    return {batch, 10, step < 20 ? 4 + step % 2 : 24 + step % 2};
  }
};

// (20 · 4.5 + 20 · 24.5) / 40 = 14.5 tokens of a target, rounded up.
TEST(Plan, SidesOfABatchAreLookedAtEachForItself) {
  recipe::TrainConfig config = config_for(3);
  config.steps = 100;
  const BatchShapes shapes = batch_shapes(LateTargets(), config);
  EXPECT_EQ(shapes.largest.sequences, 3);
  EXPECT_EQ(shapes.largest.tokens, 10);
  EXPECT_EQ(shapes.largest.target_tokens, 25);
  EXPECT_EQ(shapes.mean.tokens, 10);
  EXPECT_EQ(shapes.mean.target_tokens, 15);
}

TEST(Plan, ImagesToo) {
  model::ModelConfig c;
  c.kind = model::Kind::vit;
  c.task = model::Task::classify;
  c.layers = 1;
  c.width = 16;
  c.patch = 4;
  c.sizes = {.classes = 3, .channels = 1, .height = 8, .width = 8};
  const Plan plan = plan_training(c, config_for(5), {5, 0, 0});
  const Measured real = measure(c, config_for(5), {5, 0, 0});
  EXPECT_EQ(plan.flops_per_step, real.flops);
  EXPECT_EQ(plan.kv_bytes_per_token, 0);
}

TEST(Plan, CacheBytesFollowTheKeyHeads) {
  model::ModelConfig c = small_decoder();
  // Two layers, keys and values, 2 key heads of width 8, 4 bytes.
  EXPECT_EQ(plan_training(c, config_for(1), {1, 24, 0}).kv_bytes_per_token, 2 * 2 * 2 * 8 * 4);
  c.attention.kv_heads = 4;
  EXPECT_EQ(plan_training(c, config_for(1), {1, 24, 0}).kv_bytes_per_token, 2 * 2 * 4 * 8 * 4);
}

TEST(Plan, TheCacheOfAWindowDoesNotGrowWithTheText) {
  const auto bytes = [](const model::ModelConfig& c, std::int64_t tokens) {
    return cache_bytes(c, DType::f32, tokens);
  };
  model::ModelConfig c = small_decoder();
  const std::int64_t each = plan_training(c, config_for(1), {1, 24, 0}).kv_bytes_per_token;
  EXPECT_EQ(bytes(c, 100000), 100000 * each);
  EXPECT_EQ(cache_bytes(c, DType::bf16, 100000), 100000 * each / 2);
  c.attention.look_back = 16;
  EXPECT_EQ(bytes(c, 10), 10 * each);
  EXPECT_EQ(bytes(c, 100000), bytes(c, 200000));
  EXPECT_LT(bytes(c, 100000), 100000 * each / 10);
  // Memory held by generation.
  const auto model = model::build_model(c);
  const auto state = model->begin({}, 1, 100000, {});
  EXPECT_LT(state->bytes(), bytes(c, 100000));
  model->next(*state, Tensor::zeros({1, 600}, DType::i32), {});
  EXPECT_EQ(state->bytes(), bytes(c, 100000));
  c.kind = model::Kind::rnn;
  EXPECT_EQ(bytes(c, 100), 0);
}

TEST(Plan, LargestBatchIsTheLastThatFits) {
  const model::ModelConfig c = small_decoder();
  const auto peak = [&](std::int64_t n) {
    return plan_training(c, config_for(n), {n, 24, 0}).memory.peak;
  };
  const std::int64_t limit = peak(7);
  EXPECT_EQ(largest_batch(c, config_for(1), {1, 24, 0}, limit), 7);
  EXPECT_EQ(largest_batch(c, config_for(1), {1, 24, 0}, limit - 1), 6);
  EXPECT_EQ(largest_batch(c, config_for(1), {1, 24, 0}, 1000), std::nullopt);
}

// The process has 5000 bytes besides its tensors: what fits, to the byte.
TEST(Plan, SaysWhetherAProcessFits) {
  recipe::Recipe recipe;
  recipe.model = small_decoder();
  recipe.train = config_for(7);
  const BatchShape shape{7, 24, 0};
  ProcessMemory process;
  process.tensors = plan_training(recipe.model, recipe.train, shape).memory.peak;
  process.program = 3000;
  process.data = 1500;
  process.thread_buffers = 500;
  const std::int64_t needed = process.tensors + 5000;
  const Fit exact = fit_into(recipe, shape, process, needed);
  EXPECT_TRUE(exact.fits);
  EXPECT_EQ(exact.room, needed);
  EXPECT_EQ(exact.largest_batch, 7);
  const Fit less = fit_into(recipe, shape, process, needed - 1);
  EXPECT_FALSE(less.fits);
  EXPECT_EQ(less.largest_batch, 6);
  EXPECT_EQ(fit_into(recipe, shape, process, 6000).largest_batch, 0);
  // Where the data alone is too much while it is read, no batch helps.
  process.loading = needed + 1;
  EXPECT_FALSE(fit_into(recipe, shape, process, needed).fits);
  EXPECT_EQ(fit_into(recipe, shape, process, needed).largest_batch, 0);
  EXPECT_TRUE(fit_into(recipe, shape, process, needed + 1).fits);
}

// The room of a process is what it has, and no more than its limits.
TEST(Plan, RoomIsWhatIsThereAndWhatIsLeft) {
  const MemoryLimits limits = memory_limits();
  const std::int64_t room = room_of_process();
  EXPECT_LE(room, limits.total);
  EXPECT_GT(room, resident_bytes());
}

TEST(Plan, SevenBillionParametersTakeNoTime) {
  model::ModelConfig c;
  c.layers = 32;
  c.width = 4096;
  c.ffn = nn::FfnKind::swiglu;
  c.ffn_width = 11008;
  c.norm = nn::NormKind::rms;
  c.bias = false;
  c.attention.heads = 32;
  c.attention.position = nn::RopePosition{};
  c.sizes.vocabulary = 32000;
  c.sizes.context = 4096;
  const Plan plan = plan_training(c, config_for(1), {1, 4096, 0});
  EXPECT_EQ(plan.parameters, 6738415616);  // as Llama 2 has
  EXPECT_GT(seconds_on({1e12, 1e10}, plan), 0);
  // Weights, gradients and two moments.
  EXPECT_GT(plan.memory.peak, 4 * 4 * plan.parameters);
}

// Products at their peak, other ops by arithmetic of their own, the optimiser by the memory.
TEST(Plan, TimeFollowsTheMachine) {
  const Plan plan = plan_training(small_decoder(), config_for(6), {6, 24, 0});
  const auto seconds = [&plan](const MachineSpeed& machine) { return seconds_on(machine, plan); };
  EXPECT_EQ(seconds({}), 0);
  const double fast = seconds({1e12, 1e12}), memory = seconds({1e12, 1e9});
  EXPECT_GT(memory, fast);
  EXPECT_GT(seconds({1e9, 1e12}), fast);
  const double vectors = seconds({1e12, 1e12, 1e9});
  EXPECT_GT(vectors, fast);
  EXPECT_LT(vectors, memory);  // by the optimiser's traffic
  EXPECT_EQ(seconds({1e12, 1e9, 1e12}), memory);
}

// A mask of f32 has one operation for eight bytes: slow arithmetic is not what it waits for.
TEST(Plan, WhatTheMemoryBoundsIsPlannedAtItsRate) {
  const auto masks = [](const MachineSpeed& machine) {
    const auto seconds = [&](double dropout) {
      model::ModelConfig c = small_decoder();
      c.dropout = dropout;
      return seconds_on(machine, plan_training(c, config_for(6), {6, 24, 0}));
    };
    return seconds(0.1) - seconds(0);
  };
  const double fast = masks({1e15, 1e12, 1e12});
  EXPECT_GT(fast, 0);
  EXPECT_NEAR(masks({1e15, 1e12, 1e6}), fast, 1e-9);
  EXPECT_GT(masks({1e15, 1e6, 1e12}), 2 * fast);
}

}  // namespace
}  // namespace heddle::plan
