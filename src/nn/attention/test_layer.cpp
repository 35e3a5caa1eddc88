// The layer's corners: what it refuses, maps, dropout, caches, the meta device.
#include <gtest/gtest.h>

#include <set>

#include "heddle/cost.h"
#include "nn/attention/test_support.h"

namespace heddle::nn {
namespace {

AttentionConfig small() {
  AttentionConfig c;
  c.width = 8;
  c.heads = 4;
  return c;
}

void expect_refused(const AttentionConfig& c, const std::string& key, const std::string& reason) {
  const std::string message = refusal([&] { validate(c); });
  EXPECT_NE(message.find("key " + key + ";"), std::string::npos) << message;
  EXPECT_NE(message.find(reason), std::string::npos) << message;
}

AttentionConfig changed(const auto& change) {
  AttentionConfig c = small();
  change(c);
  return c;
}

TEST(AttentionConfig, RefusesWithTheKeyAndTheReason) {
  using C = AttentionConfig;
  validate(small());
  expect_refused(changed([](C& c) { c.width = 0; }), "width", "1 or more");
  expect_refused(changed([](C& c) { c.heads = 0; }), "heads", "1 or more");
  expect_refused(changed([](C& c) { c.heads = 3; }), "heads", "divisor of the width 8");
  expect_refused(changed([](C& c) { c.kv_heads = 3; }), "kv_heads", "divisor of the 4 heads");
  expect_refused(changed([](C& c) { c.kv_heads = 0; }), "kv_heads", "got 0");
  expect_refused(changed([](C& c) { c.kv_heads = -4; }), "kv_heads", "got -4");
  expect_refused(changed([](C& c) { c.kv_heads = 8; }), "kv_heads", "divisor of the 4 heads");
  expect_refused(changed([](C& c) { c.head_width = 0; }), "head_width", "1 or more");
  expect_refused(changed([](C& c) { c.score_width = 4; }), "score_width", "additive");
  expect_refused(changed([](C& c) {
                   c.score = Score::additive;
                   c.score_width = 0;
                 }),
                 "score_width", "1 or more");
  for (const double bad : {-1.0, HUGE_VAL, double{NAN}}) {
    expect_refused(changed([&](C& c) { c.scale = bad; }), "scale", "positive");
    expect_refused(changed([&](C& c) { c.softcap = bad; }), "softcap", "positive");
    expect_refused(changed([&](C& c) { c.dropout = bad; }), "dropout", "below 1");
  }
  for (const double bad : {1e-40, 1e40}) {  // 0 and infinity, or the other way round, in f32
    expect_refused(changed([&](C& c) { c.scale = bad; }), "scale", "1e-30 to 1e30");
    expect_refused(changed([&](C& c) { c.softcap = bad; }), "softcap", "1e-30 to 1e30");
  }
  expect_refused(changed([](C& c) { c.dropout = 1; }), "dropout", "below 1");
  expect_refused(changed([](C& c) {
                   c.sinks = true;
                   c.normaliser = ops::Normaliser::relu;
                 }),
                 "sinks", "softmax");
}

TEST(AttentionConfig, RefusesMasksAndPositionsThatDoNotFit) {
  using C = AttentionConfig;
  expect_refused(changed([](C& c) { c.look_back = -1; }), "look_back", "0 or more");
  expect_refused(changed([](C& c) { c.look_ahead = -1; }), "look_ahead", "0 or more");
  expect_refused(changed([](C& c) { c.causal = true, c.look_ahead = 1; }), "look_ahead",
                 "a causal token sees no later one");
  expect_refused(changed([](C& c) { c.prefix = true; }), "prefix", "causal = true");
  expect_refused(changed([](C& c) { c.cross = c.causal = true; }), "causal", "two sequences");
  expect_refused(changed([](C& c) { c.cross = true, c.look_back = 1; }), "look_back",
                 "two sequences");
  expect_refused(changed([](C& c) { c.cross = true, c.look_ahead = 1; }), "look_ahead",
                 "two sequences");
  for (const Position& p :
       {Position(T5Position{}), Position(AlibiPosition{}), Position(RopePosition{})})
    expect_refused(changed([&](C& c) { c.cross = true, c.position = p; }), "position",
                   std::string(to_string(p)) + " in cross-attention");
  for (const Score score : {Score::concat, Score::additive})
    expect_refused(changed([&](C& c) { c.score = score, c.position = RopePosition{}; }), "position",
                   "dot product");
  expect_refused(changed([](C& c) { c.head_width = 5, c.position = RopePosition{}; }), "rope_width",
                 "even");
  expect_refused(changed([](C& c) { c.position = T5Position{6, 2}, c.causal = true; }),
                 "t5_max_distance", "more than 3");
  // A prefix is seen both ways, so that it takes half of the buckets.
  expect_refused(changed([](C& c) { c.position = T5Position{5, 20}, c.causal = c.prefix = true; }),
                 "t5_buckets", "even number");
  expect_refused(changed([](C& c) {
                   c.head_width = 2;
                   c.position = RopePosition{.scaling = NtkScaling{2}};
                 }),
                 "rope_width", "more than 2");
  expect_refused(changed([](C& c) { c.position = LearnedPosition{}; }), "position.positions",
                 "1 or more");
  expect_refused(changed([](C& c) {
                   c.width = 9, c.head_width = 2;
                   c.position = SinusoidalPosition{};
                 }),
                 "width", "even");
}

TEST(Attention, ListsItsParametersOnce) {
  AttentionConfig c = small();
  c.kv_heads = 2;
  c.score = Score::additive;
  c.score_width = 3;
  c.position = T5Position{};
  c.sinks = c.bias = c.out_bias = true;
  Attention layer = make_attention(c, {.seed = 1});
  std::map<std::string, Shape> shapes;
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    EXPECT_TRUE(shapes.emplace(name, t.shape()).second);
    EXPECT_TRUE(t.requires_grad());
  });
  const std::map<std::string, Shape> wanted = {{"q.weight", {8, 8}},
                                               {"q.bias", {8}},
                                               {"k.weight", {4, 8}},
                                               {"k.bias", {4}},
                                               {"v.weight", {4, 8}},
                                               {"v.bias", {4}},
                                               {"out.weight", {8, 8}},
                                               {"out.bias", {8}},
                                               {"score.weight", {4, 3}},
                                               {"score.query", {4, 3, 2}},
                                               {"score.key", {2, 3, 2}},
                                               {"t5.table", {32, 4}},
                                               {"sinks", {4}}};
  EXPECT_EQ(shapes, wanted);
  Attention same = make_attention(c, {.seed = 1});
  EXPECT_EQ(doubles(same.parameters().q), doubles(layer.parameters().q));
  EXPECT_NE(doubles(layer.parameters().k), doubles(layer.parameters().v));
}

TEST(Attention, MapsAreThoseOfTheBook) {
  for (const Score score :
       {Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive}) {
    AttentionConfig c = small();
    c.score = score;
    c.kv_heads = 2;
    c.causal = true;
    c.look_back = 3;
    c.sinks = true;
    c.position = T5Position{8, 6};
    Attention layer = make_attention(c, DType::f64);
    randomise(layer, DType::f64);
    const book::Parameters p = float64(layer);
    const Tensor x = normal({2, 6, 8}, 1, 1);
    for (std::int64_t head = 0; head < 4; ++head) {
      const Tensor all = book::weights(c, p, x, x, {}, head);
      EXPECT_LT(distance(doubles(layer.weights(x, {head, 2, 3})),
                         doubles(ops::contiguous(ops::slice(all, 1, 2, 5)))),
                1e-13);
    }
  }
}

TEST(Attention, DropsOnlyWithAKeyAndTheSameForTheSameKey) {
  AttentionConfig c = small();
  c.dropout = 0.5;
  Attention layer = make_attention(c, {.seed = 3});
  AttentionConfig certain = c;
  certain.dropout = 0;
  const Attention plain = make_attention(certain, {.seed = 3});
  const Tensor x = normal({2, 40, 8}, 1, 1, DType::f32);
  AttentionCall call;
  EXPECT_EQ(doubles(layer.forward(x)), doubles(plain.forward(x)));
  call.dropout = RandomKey{1, 2, 3};
  const Doubles once = doubles(layer.forward(x, call));
  EXPECT_EQ(doubles(layer.forward(x, call)), once);
  EXPECT_NE(doubles(layer.forward(x)), once);
  call.dropout = RandomKey{1, 3, 3};
  EXPECT_NE(doubles(layer.forward(x, call)), once);
  EXPECT_EQ(doubles(plain.forward(x, call)), doubles(plain.forward(x)));
}

TEST(Attention, RefusesCallsThatDoNotFit) {
  AttentionConfig c = small();
  const Attention layer = make_attention(c);
  const Tensor x = Tensor::zeros({2, 3, 8});
  const auto says = [&](const auto& body, const char* text) {
    const std::string message = refusal(body);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says([&] { layer.forward(Tensor::zeros({2, 3, 7})); }, "argument x");
  says([&] { layer.forward(x, {.memory = x}); }, "argument memory");
  says([&] { layer.forward(x, {.prefix_lengths = integers({2}, {1, 1})}); }, "prefix = false");
  c.cross = true;
  const Attention cross = make_attention(c);
  says([&] { cross.forward(x); }, "a cache that holds it");
  c.cross = false;
  c.causal = c.prefix = true;
  const Attention prefix = make_attention(c);
  says([&] { prefix.forward(x); }, "prefix = true");
  KvCache cache(c, {2, 10, 3});
  says(
      [&] {
        const NoGrad no_grad;
        prefix.forward(x, {.prefix_lengths = integers({2}, {4, 1}), .cache = &cache});
      },
      "must hold the whole prefix");
  EXPECT_TRUE(cache.empty());
  const NoGrad no_grad;
  prefix.forward(x, {.prefix_lengths = integers({2}, {3, 1}), .cache = &cache});
  const auto next = [&](const Tensor& lengths) {
    return [&, lengths] { prefix.forward(x, {.prefix_lengths = lengths, .cache = &cache}); };
  };
  says(next(integers({2}, {4, 1})), "prefixes of at most 3");  // tokens 0 to 2 did not see 3
  says(next(integers({2}, {3, -1})), "0 or more; got -1");
  EXPECT_EQ(refusal(next(integers({2}, {3, 1}))), "");
}

struct Ignoring final : AttentionObserver {
  void see(std::int64_t, bool, const AttentionTrace&) override {}
};

TEST(Attention, RefusesWhatACacheHasNoUseFor) {
  AttentionConfig c = small();
  c.causal = true;
  c.dropout = 0.5;
  const Attention layer = make_attention(c);
  const Tensor x = Tensor::zeros({1, 3, 8});
  const NoGrad no_grad;
  KvCache cache(c, {1, 10, 3});
  Ignoring observer;
  const auto says = [&](const auto& body, const char* text) {
    const std::string message = refusal(body);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says([&] { layer.forward(x, {.cache = &cache, .dropout = RandomKey{1, 2, 3}}); },
       "argument dropout; expected none beside a cache");
  says([&] { layer.forward(x, {.cache = &cache, .observer = &observer}); }, "argument observer");
  says([&] { layer.weights(x, {0, 0, 1}, {.cache = &cache}); }, "a map needs the whole sequence");
  says([&] { layer.forward(x, {.key_lengths = integers({1}, {-1}), .cache = &cache}); },
       "argument key_lengths; expected 0 or more; got -1");
  says([&] { layer.forward(x, {.key_lengths = Tensor::zeros({1}), .cache = &cache}); },
       "argument key_lengths");
  says([&] { layer.forward(x, {.memory_documents = integers({1, 3}, {0, 0, 0})}); },
       "argument memory_documents");
  EXPECT_TRUE(cache.empty());
}

// Of the memory a cache keeps what the first call brought: another one would not be looked at.
TEST(Attention, TakesAMemoryOnce) {
  AttentionConfig c = small();
  c.cross = true;
  const Attention layer = make_attention(c, {.seed = 4});
  const Tensor x = normal({1, 2, 8}, 1, 1, DType::f32),
               memory = normal({1, 5, 8}, 1, 2, DType::f32);
  const Tensor documents = integers({1, 5}, {0, 0, 1, 1, 1});
  const NoGrad no_grad;
  KvCache cache(c, {1, 10, 2});
  layer.forward(x, {.memory = memory, .cache = &cache});
  for (const AttentionCall& again : {AttentionCall{.memory = memory, .cache = &cache},
                                     AttentionCall{.memory_documents = documents, .cache = &cache}})
    EXPECT_NE(refusal([&] { layer.forward(x, again); }).find("what the first call brought"),
              std::string::npos);
  EXPECT_EQ(doubles(layer.forward(x, {.cache = &cache})),
            doubles(layer.forward(x, {.memory = memory})));
}

TEST(Attention, AMemoryMayHaveNoTokens) {
  AttentionConfig c = small();
  c.cross = true;
  const Attention layer = make_attention(c, {.seed = 4});
  const Tensor x = normal({1, 2, 8}, 1, 1, DType::f32);
  const NoGrad no_grad;
  KvCache cache(c, {1, 10, 2});
  layer.forward(x, {.memory = Tensor::zeros({1, 0, 8}), .cache = &cache});
  EXPECT_EQ(largest(doubles(layer.forward(x, {.cache = &cache}))), 0);
  cache.clear();
  EXPECT_NE(refusal([&] { layer.forward(x, {.cache = &cache}); }).find("a cache that holds it"),
            std::string::npos);
}

TEST(KvCache, RefusesWhatItCannotHold) {
  AttentionConfig c = small();
  const auto says = [&](const auto& body, const char* text) {
    const std::string message = refusal(body);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says([&] { KvCache(c, {1, 4, 1}); }, "earlier tokens would change");
  c.causal = true;
  const Attention layer = make_attention(c);
  const Tensor x = Tensor::zeros({1, 3, 8});
  KvCache cache(c, {1, 4, 1});
  {
    const Tape tape;
    says([&] { layer.forward(x, {.cache = &cache}); }, "no gradients through a cache");
  }
  const NoGrad no_grad;
  layer.forward(x, {.cache = &cache});
  EXPECT_EQ(cache.next_position(), 3);
  says([&] { layer.forward(x, {.cache = &cache}); }, "4 positions; got 6");
  says(
      [&] {
        layer.forward(ops::slice(x, 1, 0, 1),
                      {.documents = integers({1, 1}, {0}), .cache = &cache});
      },
      "in every call or in none");
  cache.clear();
  layer.forward(x, {.cache = &cache});
  EXPECT_EQ(cache.next_position(), 3);
  c.look_back = 2;
  KvCache window(c, {1, 100, 2});
  EXPECT_EQ(window.capacity(), 4);
  says([&] { layer.forward(x, {.cache = &window}); }, "blocks of at most 2");
}

TEST(KvCache, OfAWindowDoesNotGrow) {
  AttentionConfig c = small();
  c.causal = true;
  c.look_back = 5;
  const Attention layer = make_attention(c, {.seed = 2});
  const NoGrad no_grad;
  KvCache cache(c, {1, 1000000, 4});
  const std::int64_t bytes = cache.bytes();  // so few rows are there from the start
  EXPECT_EQ(cache.most_bytes(), bytes);
  EXPECT_EQ(bytes, 2 * (5 + 4) * 8 * 4);
  for (std::uint32_t i = 0; i < 100; ++i)
    layer.forward(normal({1, 1, 8}, 1, i, DType::f32), {.cache = &cache});
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(cache.next_position(), 100);
  EXPECT_GE(cache.first_position(), 100 - 9);
}

// Tokens that were tried and taken back have overwritten what a ring held: how far it can go back
// counts from them, not from the token that came last.
TEST(KvCache, GoesBackFromTheFurthestTokenItHeld) {
  AttentionConfig c = small();
  c.causal = true;
  c.look_back = 5;
  const Attention layer = make_attention(c, {.seed = 2});
  const NoGrad no_grad;
  const Tensor x = normal({1, 60, 8}, 1, 1, DType::f32);
  const auto read = [&](KvCache& cache, std::int64_t begin, std::int64_t end) {
    return doubles(layer.forward(ops::slice(x, 1, begin, end), {.cache = &cache}));
  };
  for (std::int64_t tried = 0; tried <= 4; ++tried)
    for (std::int64_t back = 0; back <= 12; ++back) {
      SCOPED_TRACE(std::to_string(tried) + " tried, back to " + std::to_string(back));
      KvCache cache(c, {1, 60, 4}), calm(c, {1, 60, 4});
      for (std::int64_t at = 0; at < 12; at += 4) read(cache, at, at + 4);
      if (tried > 0) read(cache, 12, 12 + tried);
      cache.rewind(12);
      EXPECT_EQ(cache.can_rewind(back), 12 + tried - back <= 4);
      if (!cache.can_rewind(back)) continue;
      cache.rewind(back);
      for (std::int64_t at = 0; at < back; ++at) read(calm, at, at + 1);
      EXPECT_EQ(read(cache, back, back + 1), read(calm, back, back + 1));
    }
  KvCache anew(c, {1, 60, 4});
  for (std::int64_t at = 0; at < 20; at += 4) read(anew, at, at + 4);
  anew.clear();
  read(anew, 0, 4);
  EXPECT_TRUE(anew.can_rewind(0));
}

// Rows are allocated as tokens arrive. Afterwards every token written so far is still there, in its
// place: single tokens, a block that needs more than twice the rows, and the documents that go with
// them.
TEST(KvCache, GrowingKeepsEveryToken) {
  AttentionConfig c = small();
  c.causal = true;
  const NoGrad no_grad;
  KvCache cache(c, {2, 1000, 1});
  const std::int64_t heads = c.key_heads(), width = c.width_of_head();
  std::vector<Tensor> keys, values, documents;
  for (const std::int64_t tokens : {60, 1, 1, 1, 1, 1, 300, 7}) {
    const auto seed = static_cast<std::uint32_t>(keys.size());
    keys.push_back(normal({2, tokens, heads, width}, 1, seed, DType::f32));
    values.push_back(normal({2, tokens, heads, width}, 2, seed, DType::f32));
    documents.push_back(Tensor::full({2, tokens}, seed, DType::i64));
    cache.append(keys.back(), values.back(), documents.back());
    const CachedRows rows = cache.rows();
    EXPECT_EQ(rows.keys.to_vector<float>(), ops::concat(keys, 1).to_vector<float>()) << seed;
    EXPECT_EQ(rows.values.to_vector<float>(), ops::concat(values, 1).to_vector<float>()) << seed;
    std::vector<std::int64_t> wanted;
    for (int b = 0; b < 2; ++b)
      for (const Tensor& d : documents)
        wanted.insert(wanted.end(), static_cast<std::size_t>(d.size(1)), d.data<std::int64_t>()[0]);
    EXPECT_EQ(rows.documents.to_vector<std::int64_t>(), wanted) << seed;
  }
  EXPECT_EQ(cache.next_position(), 372);
}

// A call that is refused late, by the fused op, must leave the cache as it was.
TEST(KvCache, IsNotAdvancedByACallThatFails) {
  AttentionConfig c = small();
  c.causal = true;
  c.look_back = 3;
  const Attention layer = make_attention(c, {.seed = 2});
  const NoGrad no_grad;
  KvCache disturbed(c, {1, 100, 2}), calm(c, {1, 100, 2});
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Tensor x = normal({1, 1 + i % 2, 8}, 1, i, DType::f32);
    const std::int64_t before = disturbed.next_position();
    EXPECT_THROW(layer.forward(normal({1, 2, 8}, 2, i, DType::f32),
                               {.key_lengths = integers({2}, {1, 1}), .cache = &disturbed}),
                 Error);
    EXPECT_EQ(disturbed.next_position(), before);
    const Tensor a = layer.forward(x, {.cache = &disturbed});
    const Tensor b = layer.forward(x, {.cache = &calm});
    EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  }
  EXPECT_EQ(calm.next_position(), 30);
  EXPECT_GT(calm.rows().first_position, 0);  // the ring went round
}

// Peak bytes of forward and backward, and arithmetic.
struct Measured {
  std::int64_t peak = 0;
  double flops = 0;
  Shape shape;
};

Measured measure(const AttentionConfig& c, DType dtype, Device device) {
  Attention layer = make_attention(c, parameter_type(dtype), device);
  Tensor x = Tensor::zeros({2, 9, c.width}, dtype, device);
  x.set_requires_grad(true);
  reset_peak_memory(device);
  const std::int64_t before = memory_use(device).live;
  Measured out;
  CostMeter meter;
  Tape tape;
  const Tensor y = layer.forward(x);
  tape.backward(ops::sum_all(y));
  out.peak = memory_use(device).peak - before;
  out.flops = meter.cost().flops;
  out.shape = y.shape();
  return out;
}

TEST(Attention, CostsTheSameOnTheMetaDevice) {
  for (const Score score :
       {Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive})
    for (const Position& position : {Position(NoPosition{}), Position(T5Position{}),
                                     Position(AlibiPosition{}), Position(RopePosition{})})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        AttentionConfig c = small();
        c.score = score;
        c.kv_heads = 2;
        c.causal = true;
        c.position = position;
        if (!refusal([&] { validate(c); }).empty()) continue;
        measure(c, dtype, Device::cpu);  // packed weights are kept from here on
        const Measured cpu = measure(c, dtype, Device::cpu);
        const Measured meta = measure(c, dtype, Device::meta);
        const std::string what =
            std::string(to_string(score)) + ", " + std::string(to_string(position));
        EXPECT_EQ(meta.shape, cpu.shape) << what;
        EXPECT_EQ(meta.peak, cpu.peak) << what << ", " << to_string(dtype);
        EXPECT_DOUBLE_EQ(meta.flops, cpu.flops) << what;
      }
}

TEST(Attention, SharesRotaryTablesWithRopeOnly) {
  AttentionConfig c = small();
  const auto rotary = std::make_shared<const Rotary>(RopeOptions{}, 2);
  EXPECT_NE(refusal([&] { make_attention(c, ParameterOptions{}, rotary); }).find("rotary"),
            std::string::npos);
  c.position = RopePosition{};
  const Attention own = make_attention(c), shared = make_attention(c, ParameterOptions{}, rotary);
  const Tensor x = normal({1, 5, 8}, 1, 1, DType::f32);
  EXPECT_EQ(doubles(own.forward(x)), doubles(shared.forward(x)));
}

}  // namespace
}  // namespace heddle::nn
