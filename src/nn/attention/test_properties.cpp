// Properties that hold for every layer, whatever its sizes: RapidCheck looks for the smallest case
// that fails.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <numeric>

#include "heddle/runtime.h"
#include "nn/attention/test_support.h"

namespace heddle::nn {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}

bool flip() { return *rc::gen::arbitrary<bool>(); }

template <class T>
T one_of(const std::vector<T>& choices) {
  return choices[static_cast<std::size_t>(
      between(0, static_cast<std::int64_t>(choices.size()) - 1))];
}

// Heads, score and extras at random; no mask, no position.
AttentionConfig random_core() {
  AttentionConfig c;
  c.score =
      one_of<Score>({Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive});
  c.normaliser = flip() ? ops::Normaliser::softmax : ops::Normaliser::relu;
  c.kv_heads = one_of<std::int64_t>({1, 2, 3, 4});
  c.heads = *c.kv_heads * one_of<std::int64_t>({1, 2, 3, 4});
  c.head_width = between(1, 9);
  c.width = 2 * between(1, 8);
  if (c.score == Score::additive) c.score_width = between(1, 6);
  c.softcap = flip() ? 0 : 1.5;
  c.scale = flip() ? 0 : 0.4;
  c.sinks = c.normaliser == ops::Normaliser::softmax && flip();
  c.bias = flip();
  c.out_bias = flip();
  if (flip()) c.key_bias = flip();
  c.qk_norm = one_of<QkNorm>({QkNorm::none, QkNorm::head, QkNorm::full});
  c.norm = flip() ? NormKind::rms : NormKind::layer;
  c.norm_epsilon = 0.01;
  return c;
}

RopeScaling random_scaling(std::int64_t rotated) {
  const std::int64_t which = between(0, rotated > 2 ? 5 : 4);
  if (which == 4)
    return FactorScaling{std::vector<double>(static_cast<std::size_t>(rotated / 2), 1.5), 1.25};
  if (which == 1) return LinearScaling{4};
  if (which == 2) return Llama3Scaling{8, 1, 4, 32};
  if (which == 3)
    return YarnScaling{.factor = 4, .original_positions = 300, .beta_fast = 8, .truncate = flip()};
  if (which == 5) return NtkScaling{2};
  return NoScaling{};
}

// A position that sees distances only, or none; adds what the rest of the configuration needs.
void add_distance_position(AttentionConfig& c) {
  const bool dot = c.score == Score::scaled_dot || c.score == Score::multiplicative;
  const std::int64_t kind = between(0, dot ? 3 : 2);
  // Primes, so that no border between buckets is a whole number that may round to either side.
  if (kind == 1) c.position = T5Position{4 * between(1, 4), one_of<std::int64_t>({11, 23, 37, 59})};
  if (kind == 2) c.position = AlibiPosition{};
  if (kind == 3) {
    const std::int64_t rotated = 2 * between(1, 4);
    c.head_width = rotated + between(0, 3);
    c.position = RopePosition{.base = 100,
                              .rotated = rotated,
                              .pairing = flip() ? ops::Pairing::half : ops::Pairing::interleaved,
                              .scaling = random_scaling(rotated)};
  }
}

void add_mask(AttentionConfig& c) {
  c.causal = flip();
  c.prefix = c.causal && flip();
  if (flip()) c.look_back = between(0, 20);
  if (!c.causal && flip()) c.look_ahead = between(0, 20);
}

struct Layer {
  Layer(const AttentionConfig& config, DType dtype)
      : attention(make_attention(config, parameter_type(dtype))) {
    randomise(attention, dtype);
  }
  Attention attention;
};

Tensor tokens(std::int64_t batch, std::int64_t count, std::int64_t width, DType dtype,
              std::uint32_t stream = 1) {
  return normal({batch, count, width}, 1, stream, dtype);
}

Tensor rows(const Tensor& x, std::int64_t begin, std::int64_t end) {
  return ops::slice(x, 1, begin, end);
}

// max |a - b| relative to b.
double error(const Tensor& a, const Tensor& b) {
  const Doubles y = doubles(b);
  return distance(doubles(a), y) / std::max(1.0, largest(y));
}

Integers random_documents(std::int64_t batch, std::int64_t count) {
  Integers out;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0, document = 0; t < count; ++t) {
      document += between(0, 5) == 0;
      out.push_back(document);
    }
  return out;
}

Integers random_lengths(std::int64_t batch, std::int64_t most) {
  Integers out;
  for (std::int64_t b = 0; b < batch; ++b) out.push_back(between(0, most));
  return out;
}

struct Outcome {
  Tensor y;
  std::map<std::string, Tensor, std::less<>> gradients;
};

// Forward and all gradients of a layer.
Outcome run(Attention& layer, const Tensor& value, const AttentionCall& call) {
  Tensor x = ops::clone(value);
  x.set_requires_grad(true);
  Tape tape;
  Outcome out;
  out.y = layer.forward(x, call);
  const Tensor cotangent = normal(out.y.shape(), 1, 9, out.y.dtype());
  tape.backward(std::span(&out.y, 1), std::span(&cotangent, 1));
  out.gradients["x"] = x.grad();
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    out.gradients[std::string(name)] = t.grad();
    t.clear_grad();
  });
  return out;
}

RC_GTEST_PROP(AttentionProperties, AnyLayerIsTheOneByTheBook, ()) {
  AttentionConfig c = random_core();
  add_mask(c);
  add_distance_position(c);
  const std::int64_t batch = between(1, 3), count = one_of<std::int64_t>({1, 2, 5, 17, 70, 131});
  book::Facts facts;
  AttentionCall call;
  if (flip()) facts.key_lengths = random_lengths(batch, count);
  if (c.prefix) facts.prefix_lengths = random_lengths(batch, count);
  if (flip()) facts.documents = facts.key_documents = random_documents(batch, count);
  if (!facts.key_lengths.empty()) call.key_lengths = integers({batch}, facts.key_lengths);
  if (c.prefix) call.prefix_lengths = integers({batch}, facts.prefix_lengths);
  if (!facts.documents.empty()) call.documents = integers({batch, count}, facts.documents);

  Layer layer(c, DType::f64);
  Tensor x = tokens(batch, count, c.width, DType::f64);
  const Outcome got = run(layer.attention, x, call);
  const book::Parameters p = float64(layer.attention);
  x.set_requires_grad(true);
  Tape tape;
  const Tensor y = book::attention(c, p, x, x, facts);
  const Tensor cotangent = normal(y.shape(), 1, 9);
  tape.backward(std::span(&y, 1), std::span(&cotangent, 1));
  RC_ASSERT(error(got.y, y) < 1e-9);
  double scale = largest(doubles(x.grad()));
  for (const auto& [name, leaf] : p) scale = std::max(scale, largest(doubles(leaf.grad())));
  RC_ASSERT(distance(doubles(got.gradients.at("x")), doubles(x.grad())) <= 1e-9 * scale);
  for (const auto& [name, leaf] : p)
    RC_ASSERT(distance(doubles(got.gradients.at(name)), doubles(leaf.grad())) <= 1e-9 * scale);
}

RC_GTEST_PROP(AttentionProperties, PermutedTokensGivePermutedOutputs, ()) {
  const AttentionConfig c = random_core();
  const std::int64_t count = between(1, 90);
  Integers order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1))]);
  const auto permuted = [&](const Tensor& x) {  // [1, T, C]
    const Tensor flat = ops::reshape(x, {count, c.width});
    return ops::reshape(ops::index_select(flat, integers({count}, order)), x.shape());
  };
  const Layer layer(c, DType::f64);
  const Tensor x = tokens(1, count, c.width, DType::f64);
  RC_ASSERT(error(layer.attention.forward(permuted(x)), permuted(layer.attention.forward(x))) <
            1e-10);
}

// With every position that sees distances only: none, T5, ALiBi, RoPE with any scaling.
RC_GTEST_PROP(AttentionProperties, ADocumentDoesNotKnowWhereItLies, ()) {
  AttentionConfig c = random_core();
  c.causal = flip();
  if (flip()) c.look_back = between(0, 20);
  add_distance_position(c);
  const std::int64_t before = between(0, 80), count = between(1, 30), after = between(0, 5);
  const Layer layer(c, DType::f64);
  const Tensor x = tokens(1, before + count + after, c.width, DType::f64);
  Integers documents(static_cast<std::size_t>(before), 0);
  documents.resize(static_cast<std::size_t>(before + count), 1);
  documents.resize(static_cast<std::size_t>(before + count + after), 2);
  AttentionCall call;
  call.documents = integers({1, before + count + after}, documents);
  const Tensor packed = rows(layer.attention.forward(x, call), before, before + count);
  const Tensor alone = layer.attention.forward(rows(x, before, before + count));
  RC_ASSERT(error(packed, alone) < 1e-9);
}

RC_GTEST_PROP(AttentionProperties, RotatedProductsDependOnTheDistance, ()) {
  const std::int64_t rotated = 2 * between(1, 8), width = rotated + between(0, 3);
  const RopeOptions o{.rotated = rotated,
                      .pairing = flip() ? ops::Pairing::half : ops::Pairing::interleaved,
                      .scaling = random_scaling(rotated)};
  const Rotary rotary(o, width);
  const Tensor q = normal({1, 1, 1, width}, 1, 1), k = normal({1, 1, 1, width}, 1, 2);
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return ops::sum_all(ops::mul(rotary.rotate(q, i), rotary.rotate(k, j))).item();
  };
  const std::int64_t i = between(0, 500), j = between(0, 500), shift = between(0, 3000);
  RC_ASSERT(std::abs(product(i, j) - product(i + shift, j + shift)) < 1e-9);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = ops::contiguous(a.detach()), y = ops::contiguous(b.detach());
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

// x with the tokens from `begin` on replaced.
Tensor with_other_end(const Tensor& x, std::int64_t begin) {
  const Tensor other = tokens(x.size(0), x.size(1) - begin, x.size(2), x.dtype(), 55);
  const std::vector<Tensor> parts = {rows(x, 0, begin), other};
  return ops::concat(parts, 1);
}

RC_GTEST_PROP(AttentionProperties, TheFutureChangesNothing, ()) {
  AttentionConfig c = random_core();
  c.causal = true;
  if (flip()) c.look_back = between(0, 40);
  add_distance_position(c);
  const DType dtype = one_of<DType>({DType::f32, DType::bf16});
  const std::int64_t count = between(2, 150), cut = between(1, count - 1);
  const Layer layer(c, dtype);
  const Tensor x = tokens(2, count, c.width, dtype);
  const Tensor before = layer.attention.forward(x);
  const Tensor after = layer.attention.forward(with_other_end(x, cut));
  RC_ASSERT(same_bits(rows(before, 0, cut), rows(after, 0, cut)));
  RC_ASSERT(!same_bits(rows(before, cut, count), rows(after, cut, count)) ||
            c.normaliser == ops::Normaliser::relu);
}

RC_GTEST_PROP(AttentionProperties, PaddingChangesNoVisibleRow, ()) {
  AttentionConfig c = random_core();
  add_distance_position(c);
  const DType dtype = one_of<DType>({DType::f32, DType::bf16});
  const std::int64_t count = between(2, 150), length = between(1, count - 1);
  const Layer layer(c, dtype);
  const Tensor x = tokens(2, count, c.width, dtype);
  AttentionCall call;
  call.key_lengths = integers({2}, {length, length});
  const Tensor y = layer.attention.forward(x, call);
  // Not even NaN there matters: it is never read.
  const std::vector<Tensor> unwritten = {rows(x, 0, length),
                                         Tensor::full({2, count - length, c.width}, NAN, dtype)};
  for (const Tensor& other : {with_other_end(x, length), ops::concat(unwritten, 1)})
    RC_ASSERT(same_bits(rows(y, 0, length), rows(layer.attention.forward(other, call), 0, length)));
  const Tensor alone = layer.attention.forward(rows(x, 0, length));
  if (c.normaliser == ops::Normaliser::softmax || dtype == DType::f32)
    RC_ASSERT(error(rows(y, 0, length), alone) < (dtype == DType::bf16 ? 0.1 : 1e-3));
}

// Repeats what belongs to a key head for each of the query heads it serves.
Tensor repeated(const Tensor& t, std::int64_t groups, std::int64_t times) {
  Shape apart{groups, 1, t.elements() / groups};
  const Tensor wide = ops::reshape(t.detach(), apart);
  apart[1] = times;
  Shape shape = t.shape();
  shape[0] *= times;
  return ops::contiguous(ops::reshape(ops::broadcast_to(wide, apart), shape));
}

RC_GTEST_PROP(AttentionProperties, SharedKeyHeadsAreRepeatedOnes, ()) {
  AttentionConfig grouped = random_core();
  add_mask(grouped);
  grouped.prefix = false;
  add_distance_position(grouped);
  AttentionConfig full = grouped;
  full.kv_heads = full.heads;
  Layer shared(grouped, DType::f64), own(full, DType::f64);
  const std::int64_t groups = grouped.key_heads(), times = grouped.heads / groups;
  std::map<std::string, Tensor, std::less<>> values;
  shared.attention.for_each_parameter(
      [&](std::string_view name, Tensor& t) { values.emplace(name, t); });
  own.attention.for_each_parameter([&](std::string_view name, Tensor& t) {
    const bool of_keys = name[0] == 'k' || name[0] == 'v' || name == "score.key";
    const Tensor& value = values.at(std::string(name));
    const bool each = name == "k_norm.weight" && grouped.qk_norm == QkNorm::head;  // one for all
    t = of_keys && !each ? repeated(value, groups, times) : value.detach();
    t.set_requires_grad(true);
  });
  const std::int64_t count = between(1, 70);
  const Tensor x = tokens(2, count, grouped.width, DType::f64);
  RC_ASSERT(error(shared.attention.forward(x), own.attention.forward(x)) < 1e-10);
}

RC_GTEST_PROP(AttentionProperties, AWindowOfTheWholeLengthIsCausal, ()) {
  AttentionConfig c = random_core();
  c.causal = true;
  add_distance_position(c);
  const std::int64_t count = between(1, 150);
  AttentionConfig windowed = c;
  windowed.look_back = count - 1 + between(0, 3);
  const DType dtype = one_of<DType>({DType::f32, DType::bf16});
  const Layer layer(c, dtype), window(windowed, dtype);
  const Tensor x = tokens(2, count, c.width, dtype);
  RC_ASSERT(same_bits(layer.attention.forward(x), window.attention.forward(x)));
}

RC_GTEST_PROP(AttentionProperties, ACacheChangesNothing, ()) {
  AttentionConfig c = random_core();
  c.causal = true;
  if (flip()) c.look_back = between(0, 12);
  add_distance_position(c);
  const std::int64_t batch = between(1, 2), count = between(1, 60), block = between(1, 9);
  AttentionCall whole;
  if (flip()) whole.key_lengths = integers({batch}, random_lengths(batch, count));
  if (flip()) whole.documents = integers({batch, count}, random_documents(batch, count));
  const Layer layer(c, DType::f64);
  const Tensor x = tokens(batch, count, c.width, DType::f64);
  const NoGrad no_grad;
  KvCache cache(c, {batch, count, block}, DType::f64);
  std::vector<Tensor> parts;
  for (std::int64_t first = 0; first < count;) {
    const std::int64_t n = std::min(count - first, between(1, block));
    AttentionCall call = whole;
    call.cache = &cache;
    if (call.documents.defined()) call.documents = rows(whole.documents, first, first + n);
    parts.push_back(layer.attention.forward(rows(x, first, first + n), call));
    first += n;
  }
  RC_ASSERT(error(ops::concat(parts, 1), layer.attention.forward(x, whole)) < 1e-9);
}

struct ThreadsAgain {
  int before = threads();
  ~ThreadsAgain() { set_threads(before); }
};

// Several tiles of queries and keys, so that threads have something to share out.
TEST(AttentionThreads, GiveTheSameBits) {
  const ThreadsAgain restore;
  for (const Score score :
       {Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      AttentionConfig c;
      c.width = 24;
      c.score = score;
      c.heads = 4;
      c.kv_heads = 2;  // gradients of keys and values are sums over heads
      c.head_width = 8;
      c.causal = true;
      c.sinks = c.bias = c.out_bias = true;
      c.position = T5Position{8, 40};
      Layer layer(c, dtype);
      const Tensor x = tokens(3, 300, c.width, dtype);
      set_threads(1);
      const Outcome wanted = run(layer.attention, x, {});
      for (const int count : {2, 3, 8}) {
        set_threads(count);
        const Outcome got = run(layer.attention, x, {});
        EXPECT_TRUE(same_bits(got.y, wanted.y)) << count << " threads, " << to_string(score);
        for (const auto& [name, gradient] : wanted.gradients)
          EXPECT_TRUE(same_bits(got.gradients.at(name), gradient))
              << count << " threads, " << to_string(score) << ", gradient of " << name;
      }
    }
}

}  // namespace
}  // namespace heddle::nn
