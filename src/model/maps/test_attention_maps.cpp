#include "model/maps/attention_maps.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "heddle/memory.h"
#include "heddle/ops.h"
#include "heddle/tape.h"
#include "model/maps/attention_stats.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

Batch one_of(const ModelConfig& c, std::int64_t tokens) {
  Batch b;
  if (c.kind == Kind::vit) {
    b.images =
        ops::random_normal({1, c.sizes.channels, c.sizes.height, c.sizes.width}, 0, 1, {5, 1, 9});
    return b;
  }
  b.tokens = random_ids({1, tokens}, c.sizes.vocabulary, 1);
  if (c.task == Task::translate)
    b.target_tokens = random_ids({1, tokens - 2}, c.vocabulary_of_target(), 3);
  return b;
}

AttentionMaps maps_of(const Model& model, const Batch& batch, nn::Pass pass = {}) {
  AttentionMaps maps(model.config());
  pass.observer = &maps;
  const NoGrad no_grad;
  model.logits(batch, pass);
  return maps;
}

std::vector<std::string> names_of(const AttentionMaps& maps) {
  std::vector<std::string> names;
  for (const AttentionLayer& l : maps.layers()) names.push_back(l.name);
  return names;
}

// Weights lie where the mask allows it and sum to one.
void expect_distributions(const AttentionMaps& maps) {
  for (std::size_t layer = 0; layer < maps.layers().size(); ++layer) {
    const AttentionLayer& l = maps.layers()[layer];
    ASSERT_EQ(l.visible.size(), static_cast<std::size_t>(l.queries));
    for (std::int64_t head = 0; head < l.heads; ++head) {
      const auto w = maps.rows(layer, head, 0, l.queries).to_vector<float>();
      for (std::int64_t i = 0; i < l.queries; ++i) {
        const KeyRange seen = l.visible[static_cast<std::size_t>(i)];
        double sum = 0;
        for (std::int64_t j = 0; j < l.keys; ++j) {
          const float x = w[static_cast<std::size_t>(i * l.keys + j)];
          sum += x;
          if (j < seen.first || j >= seen.last) {
            EXPECT_EQ(x, 0);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5) << l.name << " " << head << " " << i;
      }
    }
  }
}

TEST(AttentionMaps, HaveEveryLayerOfEveryKind) {
  using Names = std::vector<std::string>;
  const std::array<std::pair<ModelConfig, Names>, 5> cases = {{
      {small(Kind::decoder, Task::language), {"0", "1"}},
      {small(Kind::encoder, Task::classify), {"0", "1"}},
      {small(Kind::encoder_decoder, Task::translate),
       {"encoder.0", "encoder.1", "decoder.0", "cross.0", "decoder.1", "cross.1"}},
      {small(Kind::vit, Task::classify), {"0", "1"}},
      {small(Kind::rnn_seq2seq, Task::translate), {"cross.0"}},
  }};
  for (const auto& [config, names] : cases) {
    const auto model = build_model(config);
    const AttentionMaps maps = maps_of(*model, one_of(config, 6));
    EXPECT_EQ(names_of(maps), names) << to_string(config.kind);
    expect_distributions(maps);
    // A class token in front; the target is two shorter than the source.
    const AttentionLayer& last = maps.layers().back();
    const std::int64_t keys = config.has_class_token() ? 7 : 6;
    EXPECT_EQ(last.keys, keys);
    EXPECT_EQ(last.queries, config.two_stacks() ? 4 : keys);
    const bool causal = config.kind == Kind::decoder;
    EXPECT_EQ(last.visible[2], (KeyRange{0, causal ? 3 : static_cast<std::int32_t>(keys)}));
  }
}

// The map of a causal model's beginning does not depend on the tokens that follow.
// Keeps the intervals of keys that every attention was called with.
struct SeenKeys final : nn::AttentionObserver {
  std::vector<const void*> self, cross;
  void see(std::int64_t, bool is_cross, const nn::AttentionTrace& trace) override {
    (is_cross ? cross : self).push_back(trace.options.keys.intervals.raw());
  }
};

TEST(Stack, MakesTheIntervalsOfKeysOnceAPass) {
  ModelConfig c = small(Kind::encoder_decoder, Task::translate);
  c.layers = 3;
  SeenKeys seen;
  nn::Pass pass = pass_in(DType::f64);
  pass.observer = &seen;
  build_f64(c)->logits(random_batch(c), pass);
  ASSERT_EQ(seen.self.size(), 6u);  // three layers read, three write
  ASSERT_EQ(seen.cross.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen.self[i], seen.self[0]);
    EXPECT_EQ(seen.self[3 + i], seen.self[3]);
    EXPECT_EQ(seen.cross[i], seen.cross[0]);
  }
  EXPECT_NE(seen.self[3], seen.cross[0]);
}

TEST(AttentionMaps, OfABeginningArePartOfTheWhole) {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.sizes.context = 24;
  c.attention.position = nn::RopePosition{};
  c.attention.kv_heads = 1;
  c.attention.look_back = 9;
  const auto model = build_model(c);
  const Batch whole = one_of(c, 24);
  Batch part = whole;
  part.tokens = ops::contiguous(ops::slice(whole.tokens, 1, 0, 11));
  const AttentionMaps a = maps_of(*model, whole), b = maps_of(*model, part);
  for (std::size_t layer = 0; layer < 2; ++layer)
    for (std::int64_t head = 0; head < 2; ++head)
      EXPECT_LE(distance(ops::contiguous(ops::slice(a.rows(layer, head, 3, 8), 1, 0, 11)),
                         b.rows(layer, head, 3, 8)),
                1e-6);
  EXPECT_EQ(a.layers()[0].visible[20], (KeyRange{11, 21}));
}

TEST(AttentionMaps, RefuseWhatTheyCannotShow) {
  const auto message = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message([] { AttentionMaps(small(Kind::rnn, Task::language)); }).find("rnn-seq2seq"),
            std::string::npos);
  const ModelConfig c = small(Kind::decoder, Task::language);
  const auto model = build_model(c);
  AttentionMaps maps = maps_of(*model, one_of(c, 4));
  EXPECT_NE(message([&] { maps.find("7"); }).find("one of 0, 1"), std::string::npos);
  EXPECT_EQ(maps.find("1"), 1u);
  EXPECT_THROW(maps.rows(2, 0, 0, 1), Error);
  EXPECT_THROW(maps.rows(0, 2, 0, 1), Error);
  EXPECT_THROW(maps.rows(0, 0, 3, 2), Error);
  nn::Pass pass;
  pass.observer = &maps;
  EXPECT_NE(message([&] { model->logits(one_of(c, 4), pass); }).find("clear()"), std::string::npos);
  maps.clear();
  model->logits(one_of(c, 4), pass);
  maps.clear();
  EXPECT_THROW(model->logits(random_batch(c), pass), Error);  // two sequences
  maps.clear();
  const auto state = model->begin({}, 1, 4, pass);  // a cache would be overwritten
  EXPECT_THROW(model->next(*state, random_ids({1, 2}, 11, 1), pass), Error);
}

// Maps that are known: attention straight from scores. bias: by distance, entry j - i + Tq - 1.
AttentionMaps made_of(const Tensor& bias, std::int64_t queries, std::int64_t keys, bool cross,
                      bool causal) {
  AttentionMaps maps(small(cross ? Kind::encoder_decoder : Kind::decoder,
                           cross ? Task::translate : Task::language));
  nn::AttentionTrace t;
  t.q = Tensor::zeros({1, queries, 1, 2});
  t.k = Tensor::zeros({1, keys, 1, 2});
  t.options.mask.causal = causal;
  t.options.relative_bias = bias;
  t.row_sums = ops::attention_with_sums(t.q, t.k, t.k, t.options).row_sums;
  maps.see(0, cross, t);
  return maps;
}

Tensor peak(std::int64_t queries, std::int64_t keys, std::int64_t offset) {
  std::vector<float> b(static_cast<std::size_t>(queries + keys - 1), 0.0f);
  b[static_cast<std::size_t>(offset + queries - 1)] = 30;
  return Tensor::from<float>({1, queries + keys - 1}, std::span<const float>(b));
}

TEST(AttentionStats, OfEqualWeights) {
  const HeadStats s = summarise(made_of({}, 4, 4, false, true), 0, 0).stats;
  EXPECT_EQ(s.queries, 3);  // the first sees itself alone
  EXPECT_NEAR(*s.entropy_bits, (1 + std::log2(3.0) + 2) / 3, 1e-6);
  EXPECT_NEAR(*s.entropy_share, 1, 1e-6);
  const double mean = (1.0 / 2 + 1.0 / 3 + 1.0 / 4) / 3;
  for (const double share : {*s.largest, *s.first, *s.self, *s.previous})
    EXPECT_NEAR(share, mean, 1e-6);
  EXPECT_NEAR(*s.last, 0.25 / 3, 1e-6);
  EXPECT_EQ(*s.next, 0);
  EXPECT_NEAR(*s.distance, (0.5 + 1 + 1.5) / 3, 1e-6);
  EXPECT_FALSE(s.sink);
  EXPECT_FALSE(s.monotonicity);
}

TEST(AttentionStats, OfQueriesWithoutAChoiceAreAbsent) {
  const HeadStats s = summarise(made_of({}, 1, 1, false, true), 0, 0).stats;
  EXPECT_EQ(s.queries, 0);
  for (const std::optional<double>& mean :
       {s.entropy_bits, s.entropy_share, s.largest, s.first, s.last, s.distance, s.self, s.previous,
        s.next, s.sink, s.monotonicity})
    EXPECT_FALSE(mean);
}

TEST(AttentionStats, OfAHeadThatLooksAtThePreviousToken) {
  // In f32 the log of a sum around e^30 is known to 4e-6.
  const HeadStats s = summarise(made_of(peak(40, 40, -1), 40, 40, false, true), 0, 0).stats;
  EXPECT_NEAR(*s.previous, 1, 1e-5);
  EXPECT_NEAR(*s.distance, 1, 1e-5);
  EXPECT_NEAR(*s.entropy_bits, 0, 1e-5);
  EXPECT_NEAR(*s.first, 1.0 / 39, 1e-5);
}

TEST(AttentionStats, OfCrossAttention) {
  const HeadStats s = summarise(made_of(peak(9, 9, 0), 9, 9, true, false), 0, 0).stats;
  EXPECT_NEAR(*s.monotonicity, 1, 1e-6);
  EXPECT_FALSE(s.distance);
  const HeadStats flat = summarise(made_of({}, 9, 7, true, false), 0, 0).stats;
  EXPECT_FALSE(flat.monotonicity) << *flat.monotonicity;  // it always looks at the middle
  EXPECT_NEAR(*flat.last, 1.0 / 7, 1e-6);
}

TEST(AttentionStats, DistancesOfPatchesAreThoseOfTheImage) {
  SummaryOptions o;
  o.grid = PatchGrid{2, 2, 1, true};
  const HeadStats s = summarise(made_of({}, 5, 5, false, false), 0, 0, o).stats;
  EXPECT_NEAR(*s.distance, (2 + std::sqrt(2.0)) / 4, 1e-6);
}

TEST(AttentionStats, PooledCellsAreSharesOfTheirQueries) {
  const std::int64_t n = 150, cells = 64;
  const AttentionMaps maps = made_of(peak(n, n, -3), n, n, false, true);
  const PooledMap p = summarise(maps, 0, 0, {.cells = cells}).pooled;
  EXPECT_EQ(p.rows, cells);
  const auto w = maps.rows(0, 0, 0, n).to_vector<float>();
  std::vector<double> sums(static_cast<std::size_t>(cells * cells)), counts(cells);
  for (std::int64_t i = 0; i < n; ++i) {
    counts[static_cast<std::size_t>(i * cells / n)] += 1;
    for (std::int64_t j = 0; j < n; ++j)
      sums[static_cast<std::size_t>(i * cells / n * cells + j * cells / n)] +=
          w[static_cast<std::size_t>(i * n + j)];
  }
  for (std::size_t c = 0; c < sums.size(); ++c)
    ASSERT_NEAR(p.shares[c], sums[c] / counts[c / cells], 1e-6);
  const PooledMap whole = summarise(made_of({}, 5, 5, false, true), 0, 0).pooled;
  EXPECT_EQ(whole.rows, 5);  // fewer tokens than cells: the map itself
  EXPECT_NEAR(whole.shares[4 * 5 + 2], 0.2, 1e-6);
}

// Bytes of running a model over n tokens and looking at all of its heads.
std::int64_t peak_bytes(std::int64_t n) {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.sizes.context = n;
  c.attention.position = nn::AlibiPosition{};
  const auto model = build_model(c);
  const Batch batch = one_of(c, n);
  const std::int64_t before = memory_use(Device::cpu).live;
  reset_peak_memory(Device::cpu);
  const AttentionMaps maps = maps_of(*model, batch);
  for (std::size_t layer = 0; layer < 2; ++layer) summarise(maps, layer, 1);
  return memory_use(Device::cpu).peak - before;
}

TEST(AttentionMaps, TakeMemoryByTokensNotBySquares) {
  const std::int64_t half = peak_bytes(2048), whole = peak_bytes(4096);
  EXPECT_LE(whole, half * 2 + half / 4);
  EXPECT_LE(whole, std::int64_t{4096} * 4096 * 4 / 2);  // half of one map
}

}  // namespace
}  // namespace heddle::model
