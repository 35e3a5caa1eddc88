#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "base/test_support.h"
#include "distributed/test_threads.h"
#include "heddle/memory.h"
#include "heddle/ops.h"
#include "heddle/random.h"
#include "optim/split.h"
#include "recipe/test_toys.h"
#include "train/evaluate/evaluate.h"
#include "train/evaluate/lengthen.h"

namespace heddle::train {

using namespace toys;
namespace {

// Sequences of different lengths in every batch.
const ToyData& ragged() {
  static const ToyData data(true, true);
  return data;
}

struct ByHand {
  double loss = 0, tokens = 0, hits = 0;
};

// Target by target, in float64.
ByHand by_hand(const model::Model& model, std::int64_t batches, std::int64_t rows) {
  ByHand sums;
  for (std::int64_t i = 0; i < batches; ++i) {
    const model::Batch batch = ragged().batch(data::Split::validation, i, rows);
    const auto logits = ops::cast(model.logits(batch, {}), DType::f64).to_vector<double>();
    const auto targets = batch.targets.to_vector<std::int32_t>();
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (targets[t] == model::kIgnore) continue;
      const double* row = logits.data() + t * kToyVocabulary;
      double sum = 0;
      for (std::int64_t v = 0; v < kToyVocabulary; ++v) sum += std::exp(row[v]);
      sums.loss += std::log(sum) - row[targets[t]];
      sums.hits += std::max_element(row, row + kToyVocabulary) - row == targets[t] ? 1 : 0;
      ++sums.tokens;
    }
  }
  sums.loss /= sums.tokens;
  return sums;
}

TEST(Evaluate, WeighsTargetsNotBatches) {
  const auto model = toy();
  EvaluateOptions options;
  options.batch = 2;
  std::int64_t calls = 0;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(all, 5);
  };
  const Evaluation e = evaluate(*model, ragged(), options);
  const ByHand expected = by_hand(*model, 5, 2);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(static_cast<double>(e.tokens), expected.tokens);
  EXPECT_NEAR(e.loss, expected.loss, 1e-6);
  EXPECT_NEAR(e.perplexity, std::exp(expected.loss), 1e-5);
  EXPECT_FALSE(e.accuracy);
  options.max_batches = 2;
  options.progress = {};
  EXPECT_NEAR(evaluate(*model, ragged(), options).loss, by_hand(*model, 2, 2).loss, 1e-6);
}

// More ranks than batches among them.
TEST(Evaluate, RanksShareTheBatchesAndFindTheSameBits) {
  EvaluateOptions options;
  options.batch = 2;
  std::vector<double> each;
  options.each = [&](double loss, std::int64_t) { each.push_back(loss); };
  const Evaluation one = evaluate(*toy(), ragged(), options);
  ASSERT_EQ(each.size(), 5u);
  for (const int ranks : {2, 3, 5, 7})
    distributed::as_ranks(ranks, [&](distributed::Communicator& group) {
      EvaluateOptions own = options;
      own.group = &group;
      std::vector<double> mine;
      own.each = [&](double loss, std::int64_t) { mine.push_back(loss); };
      const Evaluation e = evaluate(*toy(), ragged(), own);
      EXPECT_EQ(e.loss, one.loss);
      EXPECT_EQ(e.tokens, one.tokens);
      EXPECT_EQ(mine, each);
    });
}

TEST(Evaluate, CountsLabelsThatAreHit) {
  model::ModelConfig config = toy_model();
  config.kind = model::Kind::encoder;
  config.task = model::Task::tag;
  config.sizes.classes = kToyVocabulary;
  const auto model = model::build_model(config, {.seed = 5});
  EvaluateOptions options;
  options.batch = 2;
  const Evaluation e = evaluate(*model, ragged(), options);
  const ByHand expected = by_hand(*model, 5, 2);
  EXPECT_NEAR(e.loss, expected.loss, 1e-6);
  ASSERT_TRUE(e.accuracy);
  EXPECT_EQ(*e.accuracy, expected.hits / expected.tokens);
}

constexpr std::int64_t kSequences = 11, kLongest = 19;

// Numbers below `limit`, the same whatever the limit of others.
Tensor drawn(const Shape& shape, std::int64_t limit, std::uint32_t stream) {
  Tensor t = Tensor::empty(shape, DType::i32);
  auto* values = t.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const PhiloxBlock random = philox({1, 2, stream}, static_cast<std::uint64_t>(i));
    values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(random[0]) % limit);
  }
  return t;
}

// Sequence i has 1 + (5 i mod kLongest) tokens of each side.
std::int64_t length_of(std::int64_t i) { return 1 + 5 * i % kLongest; }

// The same eleven sequences, pairs or images, cut into batches and padded to the longest of each.
class CutData final : public EmptyData {
 public:
  explicit CutData(const model::ModelConfig& c) {
    const bool label = c.task == model::Task::classify;
    const std::int64_t answers = c.sizes.classes > 0 ? c.sizes.classes : c.vocabulary_of_target();
    all_.targets =
        label ? drawn({kSequences}, answers, 4) : drawn({kSequences, kLongest}, answers, 4);
    if (c.kind == model::Kind::vit) {
      all_.images = ops::random_normal(
          {kSequences, c.sizes.channels, c.sizes.height, c.sizes.width}, 0, 1, {5, 1, 9});
      return;
    }
    all_.tokens = drawn({kSequences, kLongest}, c.sizes.vocabulary, 3);
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < kSequences; ++i) lengths.push_back(length_of(i));
    all_.lengths = Tensor::from<std::int64_t>({kSequences}, lengths);
    if (c.task == model::Task::translate) {
      all_.target_tokens = drawn({kSequences, kLongest}, answers, 5);
      all_.target_lengths = all_.lengths;
    }
    auto* targets = all_.targets.mutable_data<std::int32_t>();
    for (std::int64_t i = 0; !label && i < kSequences; ++i)
      for (std::int64_t t = length_of(i); t < kLongest; ++t)
        targets[i * kLongest + t] = model::kIgnore;
  }

  bool has(data::Split) const override { return true; }
  std::int64_t batches(data::Split, std::int64_t batch) const override {
    return ceil_div(kSequences, batch);
  }
  model::Batch batch(data::Split, std::int64_t index, std::int64_t batch) const override {
    const std::int64_t end = std::min(kSequences, (index + 1) * batch);
    model::Batch b = optim::rows_of(all_, index * batch, end);
    std::int64_t longest = 0;
    for (std::int64_t i = index * batch; i < end; ++i) longest = std::max(longest, length_of(i));
    for (Tensor* t : {&b.tokens, &b.target_tokens, &b.targets})
      if (t->defined() && t->rank() == 2) *t = ops::contiguous(views::slice(*t, 1, 0, longest));
    return b;
  }

 private:
  model::Batch all_;
};

model::ModelConfig config_of(model::Kind kind, model::Task task) {
  model::ModelConfig c;
  c.kind = kind;
  c.task = task;
  c.layers = 2;
  c.width = 24;
  if (!c.recurrent()) c.attention.heads = 3;
  c.sizes.vocabulary = 37;
  c.sizes.context = kLongest;
  if (task == model::Task::tag || task == model::Task::classify) c.sizes.classes = 5;
  if (kind != model::Kind::vit) return c;
  c.sizes = {.classes = 5, .channels = 2, .height = 4, .width = 6};
  c.patch = 2;
  return c;
}

void expect_same_for_any_batch(const model::ModelConfig& config, DType precision) {
  const auto model = model::build_model(config, {.seed = 5});
  const CutData data(model->config());
  const auto with_batch = [&](std::int64_t batch) {
    EvaluateOptions options;
    options.batch = batch;
    options.precision = precision;
    return evaluate(*model, data, options);
  };
  const Evaluation one = with_batch(1);
  EXPECT_EQ(one.tokens, config.task == model::Task::classify ? kSequences : 96);
  for (const std::int64_t batch : {2, 3, 4, 7, 11, 64}) {
    SCOPED_TRACE(batch);
    const Evaluation e = with_batch(batch);
    EXPECT_EQ(e.loss, one.loss);
    EXPECT_EQ(e.perplexity, one.perplexity);
    EXPECT_EQ(e.tokens, one.tokens);
    EXPECT_EQ(e.accuracy, one.accuracy);
  }
}

// Sums are of targets, one after the other: where batches end does not matter, to the last bit. Nor
// does the padding: sinks in groups of heads show which kernel a sequence has met.
TEST(Evaluate, TheBatchDoesNotChangeTheResult) {
  using model::Kind;
  using model::Task;
  for (const auto& [kind, task] : {std::pair{Kind::decoder, Task::language},
                                   {Kind::encoder, Task::tag},
                                   {Kind::encoder, Task::classify},
                                   {Kind::encoder, Task::masked},
                                   {Kind::encoder_decoder, Task::translate},
                                   {Kind::vit, Task::classify},
                                   {Kind::rnn, Task::language},
                                   {Kind::birnn, Task::language},
                                   {Kind::birnn, Task::tag},
                                   {Kind::rnn_seq2seq, Task::translate}})
    for (const DType precision : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(std::string(to_string(kind)) + "/" + std::string(to_string(task)) + " " +
                   std::string(to_string(precision)));
      model::ModelConfig config = config_of(kind, task);
      expect_same_for_any_batch(config, precision);
      if (config.recurrent()) continue;
      config.width = 20;
      config.attention.heads = 5;
      config.attention.kv_heads = 1;
      config.attention.sinks = true;
      config.attention.scale = 3;
      expect_same_for_any_batch(config, precision);
    }
}

// 64 tokens of each sequence.
class OneBatch final : public EmptyData {
 public:
  explicit OneBatch(std::int64_t sequences) {
    batch_.tokens = drawn({sequences, 64}, 16, 3);
    batch_.targets = drawn({sequences, 64}, 16, 4);
    batch_.counted = batch_.targets.elements();
  }
  bool has(data::Split) const override { return true; }
  std::int64_t batches(data::Split, std::int64_t) const override { return 1; }
  model::Batch batch(data::Split, std::int64_t, std::int64_t) const override { return batch_; }

 private:
  model::Batch batch_;
};

// Few scores are made at once; of many, those of 512 tokens, eight sequences here.
TEST(Evaluate, ManyScoresAreMadeInParts) {
  const auto peak = [](std::int64_t vocabulary, std::int64_t sequences) {
    model::ModelConfig c = config_of(model::Kind::decoder, model::Task::language);
    c.sizes.vocabulary = vocabulary;
    c.sizes.context = 64;
    const auto model = model::build_model(c, {.seed = 5});
    const OneBatch data(sequences);
    evaluate(*model, data, {});  // weights are packed
    reset_peak_memory(Device::cpu);
    const std::int64_t before = memory_use(Device::cpu).live;
    evaluate(*model, data, {});
    return static_cast<double>(memory_use(Device::cpu).peak - before);
  };
  EXPECT_GT(peak(16, 32), 3 * peak(16, 8));
  EXPECT_LT(peak(4096, 32), 1.1 * peak(4096, 8));
  EXPECT_GT(peak(4096, 8), 3 * peak(4096, 2));
}

TEST(Lengthened, AddsPlacesThatCountForNothing) {
  model::Batch b;
  b.tokens = Tensor::from<std::int32_t>({2, 2}, {1, 2, 3, 4});
  b.documents = Tensor::from<std::int64_t>({2, 2}, {0, 1, 0, 0});
  b.targets = Tensor::from<std::int32_t>({2, 2}, {2, 5, 4, 6});
  b.counted = 4;
  constexpr std::int32_t kNone = model::kIgnore;
  using Ids = std::vector<std::int32_t>;
  using Longs = std::vector<std::int64_t>;
  model::Batch longer = lengthened(b, 3);
  EXPECT_EQ(longer.tokens.shape(), (Shape{2, 3}));
  EXPECT_EQ(longer.tokens.to_vector<std::int32_t>(), (Ids{1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(longer.lengths.to_vector<std::int64_t>(), (Longs{2, 2}));
  EXPECT_EQ(longer.documents.to_vector<std::int64_t>(), (Longs{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(longer.targets.to_vector<std::int32_t>(), (Ids{2, 5, kNone, 4, 6, kNone}));
  EXPECT_EQ(longer.counted, 4);
  EXPECT_EQ(lengthened(b, 2).tokens.raw(), b.tokens.raw()) << "long enough";
  // Pairs: each side by itself, and the targets are those of the second.
  b.documents = {};
  b.lengths = Tensor::from<std::int64_t>({2}, {2, 1});
  b.target_tokens = Tensor::from<std::int32_t>({2, 4}, {7, 8, 9, 1, 7, 8, 9, 1});
  b.targets = Tensor::from<std::int32_t>({2, 4}, {8, 9, 1, 2, 8, 9, 1, 2});
  longer = lengthened(b, 3);
  EXPECT_EQ(longer.tokens.shape(), (Shape{2, 3}));
  EXPECT_EQ(longer.lengths.to_vector<std::int64_t>(), (Longs{2, 1}));
  EXPECT_EQ(longer.target_tokens.shape(), (Shape{2, 4}));
  EXPECT_FALSE(longer.target_lengths.defined());
  EXPECT_EQ(longer.targets.shape(), (Shape{2, 4}));
  longer = lengthened(b, 5);
  EXPECT_EQ(longer.target_tokens.shape(), (Shape{2, 5}));
  EXPECT_EQ(longer.target_lengths.to_vector<std::int64_t>(), (Longs{4, 4}));
  EXPECT_EQ(longer.targets.shape(), (Shape{2, 5}));
  // One label for each sequence.
  b.target_tokens = {};
  b.targets = Tensor::from<std::int32_t>({2}, {1, 0});
  EXPECT_EQ(lengthened(b, 9).targets.shape(), (Shape{2}));
}

TEST(Evaluate, RefusesWhatItCannotJudge) {
  const auto model = toy();
  expect_says([&] { evaluate(*model, ToyData(false), {}); }, {"no validation data"});
  EvaluateOptions test;
  test.split = data::Split::test;
  expect_says([&] { evaluate(*model, ToyData(), test); }, {"no test data"});
  model->parameters().all()[0].tensor.mutable_data<float>()[0] = NAN;
  for (nn::Parameter& p : model->parameters().all()) p.tensor.mutable_data<float>()[0] = NAN;
  expect_says([&] { evaluate(*model, ToyData(), {}); }, {"loss on the validation data", "finite"});
}

}  // namespace
}  // namespace heddle::train
