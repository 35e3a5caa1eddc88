// Initial parameters, by formula for each of them, and random streams that must not overlap.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "autograd/observe.h"
#include "data/order/draw.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

// One kind of parameter: how its name ends, and the terms of its products. Sizes differ wherever
// they could be taken for one another.
struct Expected {
  std::string ending;
  enum Rule { product, branch, table, recurrent, zero, one } rule;
  double inputs = 0, outputs = 0;  // table: the width, in `inputs`
};

constexpr double kLayers = 3, kWidth = 48, kDeviation = 0.05;

// The longest ending that fits counts.
const std::vector<Expected>& expectations() {
  using E = Expected;
  static const std::vector<Expected> all = {
      {"embed.weight", E::table, kWidth},
      {"position.weight", E::table, kWidth},
      {"class_token", E::table, kWidth},
      {"head.weight", E::product, kWidth, 37},
      {"patch.weight", E::product, 2 * 25, kWidth},  // 2 channels, 5 · 5 pixels
      {"q.weight", E::product, kWidth, 64},          // 4 heads of 16
      {"k.weight", E::product, kWidth, 32},          // 2 key heads of 16
      {"v.weight", E::product, kWidth, 32},
      {"attention.out.weight", E::branch, 64, kWidth},
      {"cross.out.weight", E::branch, 64, kWidth},
      {"score.weight", E::product, 24, 1},  // additive: from 24 numbers to a score
      {"score.query", E::product, 32, 24},  // [k; q] of 16 each to 24
      {"score.key", E::product, 32, 24},
      {"t5.table", E::product, kWidth, 4},
      {"router.weight", E::product, kWidth, 5},
      {"in.weight", E::product, kWidth, 80},               // of feed-forward parts
      {"layers.0.in.weight", E::product, kWidth, kWidth},  // of recurrent layers
      {"layers.1.in.weight", E::product, kWidth, kWidth},
      {"layers.2.in.weight", E::product, kWidth, kWidth},
      {"forward.in.weight", E::product, kWidth, kWidth / 2},
      {"backward.in.weight", E::product, kWidth, kWidth / 2},
      {"out.weight", E::branch, 80, kWidth},
      {"recurrent.weight", E::recurrent, kWidth, kWidth},
      {"forward.recurrent.weight", E::recurrent, kWidth / 2, kWidth / 2},
      {"backward.recurrent.weight", E::recurrent, kWidth / 2, kWidth / 2},
      {"bridge.0.weight", E::product, kWidth, kWidth},
      {"bridge.1.weight", E::product, kWidth, kWidth},
      {"bridge.2.weight", E::product, kWidth, kWidth},
      {"combine.weight", E::product, 2 * kWidth, kWidth},
      {"norm.weight", E::one},
      {"attention_norm.weight", E::one},
      {"cross_norm.weight", E::one},
      {"ffn_norm.weight", E::one},
      {"sinks", E::zero},
      {"bias", E::zero},
  };
  return all;
}

const Expected* expected_for(const std::string& name) {
  const Expected* best = nullptr;
  for (const Expected& e : expectations())
    if (("." + name).ends_with("." + e.ending) &&
        (best == nullptr || e.ending.size() > best->ending.size()))
      best = &e;
  return best;
}

// Deviation of the rule: 1/√inputs, the one that is given, or that of a uniform number in
// ±√(6 / (inputs + outputs)), which is its bound / √3.
double deviation(const Expected& e, nn::InitRule rule, double branch_gain) {
  const double gain = e.rule == Expected::branch ? branch_gain : 1;
  if (rule == nn::InitRule::normal) return gain * kDeviation;
  if (e.rule == Expected::table || rule == nn::InitRule::fan_in) return gain / std::sqrt(e.inputs);
  return gain * std::sqrt(2 / (e.inputs + e.outputs));
}

void expect_values(const nn::Parameter& p, const Expected& e, nn::InitRule rule, double gain) {
  const Doubles values = doubles(p.tensor);
  const auto count = static_cast<double>(values.size());
  if (e.rule == Expected::zero || e.rule == Expected::one) {
    for (const double v : values) EXPECT_EQ(v, e.rule == Expected::one ? 1 : 0);
    return;
  }
  const double wanted = deviation(e, rule, gain);
  double sum = 0, squares = 0, largest = 0, fourth = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
    largest = std::max(largest, std::abs(v));
  }
  // Five deviations of the estimates: of a mean, and of a deviation of normal numbers.
  EXPECT_NEAR(sum / count, 0, 5 * wanted / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count) / wanted, 1, 5 / std::sqrt(2 * count));
  const bool orthogonal = e.rule == Expected::recurrent && rule == nn::InitRule::fan_in;
  const bool uniform = rule == nn::InitRule::xavier && e.rule != Expected::table;
  if (uniform) {
    EXPECT_LE(largest, std::sqrt(3) * wanted * (1 + 1e-6));
  }
  // The fourth moment tells normal numbers (3) from uniform ones (1.8).
  if (count > 2000 && !orthogonal) {
    const double spread = (uniform ? 2.4 : 9.8) / std::sqrt(count);  // √(E x⁸ - (E x⁴)²) / √n
    EXPECT_NEAR(fourth / count / std::pow(wanted, 4), uniform ? 1.8 : 3, 5 * spread);
  }
  if (!orthogonal) return;
  const Tensor w = ops::cast(p.tensor.detach(), DType::f64);
  const Doubles gram = doubles(ops::matmul(w, ops::transpose(w, 0, 1)));
  const std::int64_t size = w.size(0);
  for (std::int64_t i = 0; i < size * size; ++i)
    EXPECT_NEAR(gram[static_cast<std::size_t>(i)], i % (size + 1) == 0 ? 1 : 0, 1e-5);
}

ModelConfig sized(Kind kind, Task task) {
  ModelConfig c;
  c.kind = kind;
  c.task = task;
  c.layers = 3;
  c.width = 48;
  c.init_deviation = kDeviation;
  c.sizes.classes = task == Task::tag || task == Task::classify ? 37 : 0;
  c.sizes.vocabulary = task == Task::language || task == Task::masked ? 37 : 53;
  c.sizes.target_vocabulary = task == Task::translate ? 37 : 0;
  c.sizes.context = 60;
  if (c.recurrent() && kind != Kind::rnn_seq2seq) return c;
  c.attention.heads = 4;
  c.attention.kv_heads = 2;
  c.attention.head_width = 16;
  if (!c.recurrent()) c.ffn_width = 80;
  return c;
}

std::vector<Variant> initialised() {
  std::vector<Variant> all = {{"decoder", sized(Kind::decoder, Task::language)},
                              {"encoder-decoder", sized(Kind::encoder_decoder, Task::translate)},
                              {"classifier", sized(Kind::encoder, Task::classify)},
                              {"vit", sized(Kind::vit, Task::classify)},
                              {"rnn", sized(Kind::rnn, Task::language)},
                              {"birnn", sized(Kind::birnn, Task::tag)},
                              {"rnn-seq2seq", sized(Kind::rnn_seq2seq, Task::translate)},
                              {"experts", sized(Kind::decoder, Task::language)}};
  all[0].config.attention.position = nn::LearnedPosition{};
  all[0].config.attention.sinks = true;
  all[1].config.attention.position = nn::T5Position{};
  all[1].config.ffn = nn::FfnKind::swiglu;
  all[2].config.attention.score = nn::Score::additive;
  all[2].config.attention.score_width = 24;
  all[3].config.sizes = {.classes = 37, .channels = 2, .height = 10, .width = 15};
  all[3].config.patch = 5;
  all[7].config.moe = nn::MoeOptions{.experts = 5, .shared = 1};
  return all;
}

TEST(Initial, EveryParameterBeginsByItsFormula) {
  std::set<std::string> met;
  for (const Variant& v : initialised())
    for (const auto rule : {nn::InitRule::fan_in, nn::InitRule::normal, nn::InitRule::xavier})
      for (const bool branches : {true, false}) {
        ModelConfig c = v.config;
        c.init = rule;
        if (c.recurrent() && !branches) continue;
        c.init_branches = branches;
        const auto model = build_model(c, {.seed = 6});
        // Six branches join the stream in three layers.
        const double gain = branches && !c.recurrent() ? 1 / std::sqrt(2 * kLayers) : 1;
        for (const nn::Parameter& p : model->parameters().all()) {
          SCOPED_TRACE(v.name + " " + p.name + " rule " + std::to_string(static_cast<int>(rule)));
          const Expected* e = expected_for(p.name);
          ASSERT_NE(e, nullptr) << "no formula for this parameter";
          met.insert(e->ending);
          expect_values(p, *e, rule, gain);
        }
      }
  for (const Expected& e : expectations()) EXPECT_TRUE(met.contains(e.ending)) << e.ending;
}

// No two parameters begin with the same numbers: of two streams that met, the shorter would be the
// beginning of the longer, up to their deviations.
TEST(Initial, NoTwoParametersShareAStream) {
  for (const Variant& v : initialised()) {
    const auto model = build_model(v.config, {.seed = 6});
    std::map<std::vector<int>, std::string> signs;
    for (const nn::Parameter& p : model->parameters().all()) {
      if (p.tensor.rank() < 2 || p.tensor.elements() < 48) continue;
      const Doubles values = doubles(p.tensor);
      std::vector<int> first;
      for (std::size_t i = 0; i < 48; ++i) first.push_back(values[i] > 0 ? 1 : 0);
      const auto [at, is_new] = signs.emplace(first, p.name);
      EXPECT_TRUE(is_new) << v.name << ": " << p.name << " begins like " << at->second;
    }
    EXPECT_GT(signs.size(), 2u);
  }
}

TEST(Initial, AnotherSeedGivesOtherNumbers) {
  const auto one = build_model(initialised()[0].config, {.seed = 6});
  const auto two = build_model(initialised()[0].config, {.seed = 7});
  for (std::size_t i = 0; i < one->parameters().all().size(); ++i) {
    const nn::Parameter& p = one->parameters().all()[i];
    if (p.tensor.rank() < 2) continue;
    EXPECT_GT(distance(p.tensor, two->parameters().all()[i].tensor), 0) << p.name;
  }
}

// The first 64 decisions of every dropout of a forward pass, by the zeros it made.
std::vector<std::uint64_t> masks_of(const Model& model, const Batch& batch, const RandomKey& key) {
  constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> masks;
  const autograd::ObserveOps observe([&](const autograd::OpEvent& event) {
    if (event.backward || std::string_view(event.op) != "dropout") return;
    const Doubles values = doubles(event.values.front());
    ASSERT_GE(values.size(), kBits);
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kBits; ++i) mask |= std::uint64_t{values[i] == 0} << i;
    masks.push_back(mask);
  });
  Tape tape;
  nn::Pass pass = pass_f64();
  pass.random = key;
  (void)model.loss(batch, pass, 0);
  return masks;
}

// Of two independent masks at 0.5 about half of 64 decisions are equal: 10 of them or fewer
// different, or equal, has a chance of 1e-8.
void expect_apart(const std::vector<std::uint64_t>& masks) {
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int different = std::popcount(masks[i] ^ masks[j]);
      EXPECT_GT(different, 10) << "dropout " << j << " and " << i << " of one pass meet";
      EXPECT_LT(different, 54) << "dropout " << j << " and " << i << " of one pass are opposite";
    }
}

TEST(Streams, NoTwoPlacesDropAlike) {
  struct Case {
    Kind kind;
    Task task;
    std::size_t places;  // that drop: the input, and what each layer has
  };
  // Two layers each; encoder-decoder: two inputs, 2 · 2 and 2 · 3. rnn-seq2seq: two inputs, 2, 2
  // and what its attention ends in.
  const std::vector<Case> cases = {
      {Kind::decoder, Task::language, 1 + 4}, {Kind::encoder_decoder, Task::translate, 2 + 4 + 6},
      {Kind::vit, Task::classify, 1 + 4},     {Kind::rnn, Task::language, 1 + 2},
      {Kind::birnn, Task::tag, 1 + 2},        {Kind::rnn_seq2seq, Task::translate, 2 + 2 + 2 + 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.kind));
    ModelConfig config = small(c.kind, c.task);
    config.dropout = config.embedding_dropout = 0.5;
    const auto model = build_f64(config);
    const Batch batch = random_batch(config);
    std::vector<std::uint64_t> all = masks_of(*model, batch, {1, 7, 0});
    EXPECT_EQ(all.size(), c.places);
    EXPECT_EQ(masks_of(*model, batch, {1, 7, 0}), all);  // the same step again
    // Other steps, seeds and parts of a batch.
    for (const RandomKey& key :
         {RandomKey{1, 8, 0}, RandomKey{2, 7, 0}, RandomKey{1, 7, nn::kPartStreams}}) {
      const auto more = masks_of(*model, batch, key);
      all.insert(all.end(), more.begin(), more.end());
    }
    expect_apart(all);
  }
}

// The share that is dropped, and what is left is scaled up.
TEST(Streams, DropoutDropsItsShare) {
  ModelConfig config = small(Kind::decoder, Task::language);
  config.width = 64;
  config.dropout = 0.2;
  config.embedding_dropout = 0.4;
  const auto model = build_f64(config);
  std::vector<double> shares;
  const autograd::ObserveOps observe([&](const autograd::OpEvent& event) {
    if (event.backward || std::string_view(event.op) != "dropout") return;
    const Doubles in = doubles(event.inputs.front()), out = doubles(event.values.front());
    const double share = shares.empty() ? 0.4 : 0.2;  // the embedding comes first
    for (std::size_t i = 0; i < in.size(); ++i)
      // Shares are parts of 65536.
      EXPECT_NEAR(out[i], out[i] == 0 ? 0 : in[i] / (1 - share), 1e-4 * std::abs(in[i]));
    shares.push_back(static_cast<double>(std::ranges::count(out, 0.0)) /
                     static_cast<double>(out.size()));
  });
  Tape tape;
  nn::Pass pass = pass_f64();
  pass.random = RandomKey{1, 7, 0};
  (void)model->loss(random_batch(config), pass, 0);
  ASSERT_EQ(shares.size(), 5u);
  // 768 numbers each: five deviations.
  EXPECT_NEAR(shares[0], 0.4, 0.09);
  for (std::size_t i = 1; i < shares.size(); ++i) EXPECT_NEAR(shares[i], 0.2, 0.075);
}

// Data draws by keys far from those of dropout and parameters of the same seed and step.
TEST(Streams, DataHasStreamsOfItsOwn) {
  using data::Stream;
  std::set<PhiloxBlock> blocks;
  std::size_t streams = 0;
  const auto add = [&](const RandomKey& key) {
    blocks.insert(philox(key, 0));
    ++streams;
  };
  for (const Stream stream : {Stream::windows, Stream::order, Stream::batches, Stream::masks,
                              Stream::images, Stream::held_out, Stream::prompts})
    for (const std::int64_t step : {0, 1, 2}) add(data::stream_key(1, step, stream));
  // Every site of every layer of every part lies below these.
  const std::uint32_t dropout_end = 4096 * nn::kPartStreams;
  EXPECT_LT(dropout_end, static_cast<std::uint32_t>(Stream::windows));
  for (const std::uint32_t op : {0u, 1u, 16u, nn::kPartStreams, dropout_end - 1}) add({1, 1, op});
  EXPECT_EQ(blocks.size(), streams);
}

}  // namespace
}  // namespace heddle::model
