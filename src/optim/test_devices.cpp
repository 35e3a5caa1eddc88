// Training and writing on a device whose memory the host cannot read and that has eight plain
// kernels (tests/mock): nothing above the seam may know the CPU.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "mock/mock.h"
#include "model/test_support.h"
#include "optim/optimizer.h"
#include "optim/step.h"
#include "recipe/test_toys.h"
#include "tensor/engine.h"
#include "train/trainer.h"

namespace heddle::optim {

using namespace toys;
namespace {

using model::Kind;
using model::Task;

// Every kind with every task, and experts in those that have them.
std::vector<std::pair<std::string, model::ModelConfig>> every_kind() {
  std::vector<std::pair<std::string, model::ModelConfig>> all;
  for (const auto& [kind, task] :
       std::vector<std::pair<Kind, Task>>{{Kind::decoder, Task::language},
                                          {Kind::encoder, Task::tag},
                                          {Kind::encoder, Task::classify},
                                          {Kind::encoder, Task::masked},
                                          {Kind::vit, Task::classify},
                                          {Kind::encoder_decoder, Task::translate},
                                          {Kind::rnn, Task::language},
                                          {Kind::birnn, Task::tag},
                                          {Kind::birnn, Task::language},
                                          {Kind::rnn_seq2seq, Task::translate}}) {
    model::ModelConfig config = model::small(kind, task);
    const std::string name = std::string(to_string(kind)) + " " + std::string(to_string(task));
    config.dropout = 0.2;
    all.emplace_back(name, config);
    if (config.recurrent()) continue;
    config.moe = nn::MoeOptions{.experts = 4, .balance = 0.1};
    all.emplace_back(name + " with experts", config);
  }
  return all;
}

// The same weights on the device.
std::unique_ptr<model::Model> copy_on(Device device, const model::Model& model,
                                      DType dtype = DType::f64) {
  model::BuildOptions options;
  options.dtype = dtype;
  options.device = device;
  options.source = [&model](const std::string& name, const Shape&) {
    for (const nn::Parameter& p : model.parameters().all())
      if (p.name == name) return p.tensor.detach();
    return Tensor();
  };
  return model::build_model(model.config(), options);
}

// One update, as the trainer makes it; the loss, and the reads that it took.
struct Update {
  double loss = 0, norm = 0;
  std::int64_t reads = 0;
};

Update take_step(model::Model& model, const model::Batch& batch) {
  recipe::TrainConfig c = toy_training();
  c.precision = DType::f64;
  c.label_smoothing = 0.1;
  c.accumulate = 2;
  Optimizer optimizer(c, model.parameters());
  const std::int64_t before = device_reads();
  const StepSums sums = add_gradients(model, batch, c, 1);
  const Tensor norm = optimizer.gradient_norm();
  optimizer.step(1, 1e-2, norm, sums.losses);
  std::vector<Tensor> wanted = sums.losses;
  wanted.push_back(norm);
  const std::vector<Tensor> here = read(wanted);
  Update update;
  update.reads = device_reads() - before;
  update.norm = here.back().item();
  update.loss = sums.loss(std::span(here).first(here.size() - 1));
  return update;
}

TEST(OtherDevice, EveryKindOfModelTakesAStepThereAsOnTheCpu) {
  for (const auto& [name, config] : every_kind()) {
    SCOPED_TRACE(name);
    const auto here = model::build_f64(config);
    const auto there = copy_on(mock::device(), *here);
    const model::Batch batch = model::random_batch(config);
    const Update expected = take_step(*here, batch), got = take_step(*there, batch);
    EXPECT_NEAR(got.loss, expected.loss, 1e-9);
    EXPECT_NEAR(got.norm, expected.norm, 1e-9 * expected.norm);
    EXPECT_EQ(expected.reads, 0);
    EXPECT_EQ(got.reads, 1);
    for (std::size_t i = 0; i < here->parameters().all().size(); ++i) {
      const nn::Parameter& a = there->parameters().all()[i];
      const nn::Parameter& b = here->parameters().all()[i];
      EXPECT_EQ(a.tensor.device(), mock::device());
      const auto got_values = a.tensor.to_vector<double>(), want = b.tensor.to_vector<double>();
      for (std::size_t j = 0; j < want.size(); ++j)
        ASSERT_NEAR(got_values[j], want[j], 1e-7) << a.name << " " << j;
    }
  }
}

// The whole trainer, not only the pieces that take_step() above puts together: hooks, logs of steps
// and bookkeeping read nothing of their own.
TEST(OtherDevice, ATrainerReadsOncePerStep) {
  const auto there = copy_on(mock::device(), *toy(0.1), DType::f32);
  const ToyData data(/*validation=*/false);
  recipe::TrainConfig config = toy_training();
  config.steps = 7;
  config.eval_every.reset();
  std::vector<std::int64_t> reads_at;
  train::Hooks hooks;
  hooks.on_step = [&](const train::StepReport&) { reads_at.push_back(device_reads()); };
  train::Trainer trainer(*there, data, config, nullptr, std::move(hooks));
  const std::int64_t before = device_reads();
  trainer.run();
  ASSERT_EQ(reads_at.size(), 7u);
  for (std::size_t i = 0; i < reads_at.size(); ++i)
    EXPECT_EQ(reads_at[i] - before, static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(device_reads(), reads_at.back());
}

TEST(OtherDevice, AWriterReadsOncePerToken) {
  for (const auto& [name, config] : every_kind()) {
    if (!config.generates()) continue;
    SCOPED_TRACE(name);
    const auto here = model::build_f64(config);
    const auto there = copy_on(mock::device(), *here);
    model::Batch source = model::random_batch(config);
    source.targets = {};
    nn::Pass pass;
    pass.precision = DType::f64;
    const std::int64_t sequences = source.tokens.size(0);
    const auto wanted = here->begin(source, sequences, 6, pass);
    const auto state = there->begin(source, sequences, 6, pass);
    for (std::int32_t token = 1; token < 4; ++token) {
      const Tensor next = Tensor::full({sequences, 1}, token, DType::i32);
      const std::int64_t before = device_reads();
      const Tensor logits = there->next(*state, next, pass);
      const std::vector<double> got = logits.to_vector<double>();
      EXPECT_EQ(device_reads() - before, 1);
      const std::vector<double> expected = here->next(*wanted, next, pass).to_vector<double>();
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-9);
    }
  }
}

TEST(OtherDevice, IdsAreCheckedBeforeTheyLeaveTheCpu) {
  const model::ModelConfig config = model::small(Kind::decoder, Task::language);
  const auto there = copy_on(mock::device(), *model::build_f64(config));
  const auto vocabulary = static_cast<std::int32_t>(config.sizes.vocabulary);
  nn::Pass pass;
  pass.precision = DType::f64;
  model::Batch batch = model::random_batch(config);
  batch.tokens.mutable_data<std::int32_t>()[3] = vocabulary;
  EXPECT_THROW(there->logits(batch, pass), Error);
  batch.tokens.mutable_data<std::int32_t>()[3] = 0;
  batch.targets.mutable_data<std::int32_t>()[3] = -1;
  EXPECT_THROW(there->loss(batch, pass, 0), Error);
  batch.targets.mutable_data<std::int32_t>()[3] = model::kIgnore;
  EXPECT_NO_THROW(there->loss(batch, pass, 0));
}

}  // namespace
}  // namespace heddle::optim
