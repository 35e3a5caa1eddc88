// Every sentence of the grammar: score × normaliser × heads × mask × position × extras, each in
// f64, f32 and bf16 and, where tokens are generated, with a cache, against the layer by the book.
// Invalid combinations must be refused.
#include <gtest/gtest.h>

#include <cstdio>

#include "nn/attention/test_support.h"
#include "nn/position/learned.h"
#include "nn/position/sinusoidal.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::nn {
namespace {

constexpr std::int64_t kBatch = 2, kTokens = 11, kMemory = 5, kWidth = 10;
// Whole sequences take the kernels of many queries, blocks from a cache those of few.
static_assert(!cpu::few_queries({.queries = kTokens}));

struct MaskCase {
  bool causal = false, prefix = false;
  std::optional<std::int64_t> look_back = {}, look_ahead = {};
  bool padding = false, documents = false, cross = false;

  std::string name() const {
    std::string out;
    const auto add = [&out](bool has, const char* word) {
      if (has) out += (out.empty() ? "" : "+") + std::string(word);
    };
    add(causal, "causal");
    add(prefix, "prefix");
    add(look_back.has_value(), "back");
    add(look_ahead.has_value(), "ahead");
    add(padding, "padding");
    add(documents, "documents");
    add(cross, "cross");
    return out.empty() ? "no mask" : out;
  }
};

// Every set of them; two of three make no sense.
std::vector<MaskCase> all_masks() {
  std::vector<MaskCase> masks;
  for (unsigned bits = 0; bits < 128; ++bits) {
    MaskCase m{.causal = (bits & 1) != 0,
               .prefix = (bits & 2) != 0,
               .padding = (bits & 16) != 0,
               .documents = (bits & 32) != 0,
               .cross = (bits & 64) != 0};
    if ((bits & 4) != 0) m.look_back = 3;
    if ((bits & 8) != 0) m.look_ahead = 2;
    masks.push_back(m);
  }
  return masks;
}

const Position kPositions[] = {
    NoPosition{}, SinusoidalPosition{}, LearnedPosition{kTokens}, T5Position{8, 6}, AlibiPosition{},
    // Slow enough for positive scores to stay positive.
    RopePosition{.scaling = Llama3Scaling{16, 1, 4, 6}},
    RopePosition{.base = 100,
                 .rotated = 2,
                 .pairing = ops::Pairing::interleaved,
                 .scaling = LinearScaling{16}},
    RopePosition{.rotated = 3},  // senseless
};

struct Extras {
  const char* name;
  bool sinks = false, bias = false;
  double softcap = 0;
};
const Extras kExtras[] = {{.name = "plain"},
                          {.name = "bias+softcap", .bias = true, .softcap = 2},
                          {.name = "sinks", .sinks = true}};

struct Sentence {
  AttentionConfig config;
  MaskCase mask;
  std::string name;
};

// The rules, a second time and in one expression each.
bool makes_sense(const Sentence& s) {
  const AttentionConfig& c = s.config;
  const bool dot = c.score == Score::scaled_dot || c.score == Score::multiplicative;
  const auto* rope = std::get_if<RopePosition>(&c.position);
  const bool by_distance = rope != nullptr || std::holds_alternative<T5Position>(c.position) ||
                           std::holds_alternative<AlibiPosition>(c.position);
  return c.heads % *c.kv_heads == 0 && !(c.causal && c.look_ahead) && !(c.prefix && !c.causal) &&
         !(c.sinks && c.normaliser == ops::Normaliser::relu) &&
         !(rope != nullptr && (!dot || rope->rotated % 2 != 0)) &&
         !(c.cross && (c.causal || c.look_back || c.look_ahead || by_distance));
}

void for_each_sentence(Score score, const auto& fn) {
  for (const auto normaliser : {ops::Normaliser::softmax, ops::Normaliser::relu})
    for (const std::int64_t kv_heads : {4, 2, 1, 3})
      for (const MaskCase& mask : all_masks())
        for (const Position& position : kPositions)
          for (const Extras& extras : kExtras) {
            AttentionConfig c;
            c.width = kWidth;
            c.score = score;
            c.normaliser = normaliser;
            c.heads = 4;
            c.kv_heads = kv_heads;
            c.head_width = 4;
            if (score == Score::additive) c.score_width = 3;
            c.causal = mask.causal;
            c.prefix = mask.prefix;
            c.look_back = mask.look_back;
            c.look_ahead = mask.look_ahead;
            c.cross = mask.cross;
            c.position = position;
            c.softcap = extras.softcap;
            c.sinks = extras.sinks;
            c.bias = c.out_bias = extras.bias;
            const bool softmax = normaliser == ops::Normaliser::softmax;
            fn(Sentence{c, mask,
                        std::string(to_string(score)) + (softmax ? ", softmax, " : ", relu, ") +
                            std::to_string(kv_heads) + " kv heads, " + mask.name() + ", " +
                            std::string(to_string(position)) + ", " + extras.name});
          }
}

book::Facts facts_of(const MaskCase& m) {
  book::Facts f;
  // One sequence all padding, where nothing else could hide that its rows are empty.
  if (m.padding) f.key_lengths = m.documents || m.cross ? Integers{4, 5} : Integers{8, 0};
  if (m.prefix) f.prefix_lengths = {4, 0};
  if (m.documents) {
    f.documents = {0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 5, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 6};
    f.key_documents = m.cross ? Integers{0, 0, 0, 2, 2, 3, 4, 4, 5, 5} : f.documents;
  }
  return f;
}

AttentionCall call_of(const MaskCase& m, const book::Facts& f) {
  AttentionCall call;
  if (m.padding) call.key_lengths = integers({kBatch}, f.key_lengths);
  if (m.prefix) call.prefix_lengths = integers({kBatch}, f.prefix_lengths);
  if (m.documents) call.documents = integers({kBatch, kTokens}, f.documents);
  if (m.documents && m.cross) call.memory_documents = integers({kBatch, kMemory}, f.key_documents);
  return call;
}

// Forward value and all gradients, by name.
struct Values {
  Doubles y;
  std::map<std::string, Doubles, std::less<>> gradients;
  double scale = 0;  // largest gradient
};

// The inputs of every sentence; leaves, made anew for every run.
struct Tokens {
  explicit Tokens(DType dtype, bool positive = false)
      : x(normal({kBatch, kTokens, kWidth}, 1, 1, dtype)),
        memory(normal({kBatch, kMemory, kWidth}, 1, 2, dtype)),
        learned_table(normal({kTokens, kWidth}, 1, 3, parameter_type(dtype))),
        cotangent(normal({kBatch, kTokens, kWidth}, 1, 4, dtype)) {
    for (Tensor* t : {&x, &memory, &learned_table}) {
      if (positive) *t = absolute(*t);
      t->set_requires_grad(true);
    }
  }
  Tensor x, memory, learned_table, cotangent;
};

void collect(Values& out, const std::string& name, const Tensor& leaf) {
  if (!leaf.grad().defined()) return;
  out.gradients[name] = doubles(leaf.grad());
  out.scale = std::max(out.scale, largest(out.gradients[name]));
}

void collect(Values& out, const Tokens& t) {
  collect(out, "x", t.x);
  collect(out, "memory", t.memory);
  collect(out, "learned", t.learned_table);
}

Values by_the_book(const Sentence& s, const book::Facts& facts, const book::Parameters& p,
                   bool positive = false) {
  const Tokens t(DType::f64, positive);
  Values out;
  Tape tape;
  Tensor x = t.x;
  if (std::holds_alternative<SinusoidalPosition>(s.config.position))
    x = ops::add(x, book::sine_waves(kTokens, kWidth));
  if (std::holds_alternative<LearnedPosition>(s.config.position)) x = ops::add(x, t.learned_table);
  const Tensor y = book::attention(s.config, p, x, s.config.cross ? t.memory : x, facts);
  out.y = doubles(y);
  tape.backward(std::span(&y, 1), std::span(&t.cotangent, 1));
  collect(out, t);
  for (const auto& [name, leaf] : p) collect(out, name, leaf);
  return out;
}

Tensor with_position(const Tensor& x, const Sentence& s, const Tokens& t) {
  if (std::holds_alternative<SinusoidalPosition>(s.config.position))
    return ops::add(x, sinusoidal(0, kTokens, kWidth, x.dtype()));
  if (std::holds_alternative<LearnedPosition>(s.config.position))
    return ops::add(x, learned(t.learned_table, 0, kTokens, x.dtype()));
  return x;
}

// A relu'd score near 0 may fall on either side when it is rounded to 8 bits, and a row of such
// scores is divided by next to nothing. So bf16 gets positive scores there.
bool wants_positive(const Sentence& s, DType dtype) {
  return dtype == DType::bf16 && s.config.normaliser == ops::Normaliser::relu;
}

Values by_the_layer(const Sentence& s, Attention& layer, AttentionCall call, DType dtype) {
  const Tokens t(dtype, wants_positive(s, dtype));
  Values out;
  Tape tape;
  if (s.config.cross) call.memory = t.memory;
  const Tensor y = layer.forward(with_position(t.x, s, t), call);
  out.y = doubles(y);
  tape.backward(std::span(&y, 1), std::span(&t.cotangent, 1));
  collect(out, t);
  layer.for_each_parameter([&](std::string_view name, Tensor& leaf) {
    collect(out, std::string(name), leaf);
    leaf.clear_grad();
  });
  return out;
}

// The same tokens in blocks of these sizes, through a cache.
Doubles cached(const Sentence& s, const Attention& layer, const AttentionCall& whole, DType dtype,
               const Integers& blocks) {
  const NoGrad no_grad;
  const Tokens t(dtype, wants_positive(s, dtype));
  const Tensor x = with_position(t.x, s, t);
  const std::int64_t largest_block = *std::max_element(blocks.begin(), blocks.end());
  KvCache cache(s.config, {kBatch, kTokens, largest_block}, dtype);
  std::vector<Tensor> parts;
  std::int64_t first = 0;
  for (const std::int64_t n : blocks) {
    AttentionCall call = whole;
    call.cache = &cache;
    if (s.config.cross && first == 0) call.memory = t.memory;
    if (first > 0) call.memory_documents = {};
    if (whole.documents.defined())
      call.documents = ops::slice(whole.documents, 1, first, first + n);
    parts.push_back(layer.forward(ops::slice(x, 1, first, first + n), call));
    first += n;
  }
  if (s.config.look_back && largest_block + *s.config.look_back < kTokens) {
    EXPECT_EQ(cache.capacity(), largest_block + *s.config.look_back);
  }
  return doubles(ops::concat(parts, 1));
}

struct Counts {
  std::int64_t ran = 0, with_cache = 0, refused = 0, cache_refused = 0;
};

double tolerance(const Sentence& s, DType dtype) {
  // A sum of relu'd scores may be small: errors of scores grow by what it is divided by.
  const double worse = s.config.normaliser == ops::Normaliser::relu ? 20 : 1;
  if (dtype == DType::f64) return 1e-12 * worse;
  return 1e-5 * worse;
}

double norm(const Doubles& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

double norm_of_difference(Doubles a, const Doubles& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a);
}

// bf16 rounds everything on the way to 8 bits: a distance in the mean, which tells types that go
// wrong. Formulas are f64's and f32's to prove.
void compare_bf16(const Sentence& s, const char* what, const Doubles& got, const Doubles& wanted,
                  double scale) {
  const double limit = s.config.normaliser == ops::Normaliser::relu ? 0.15 : 0.05;
  const double floor = scale * std::sqrt(static_cast<double>(wanted.size()));
  const double error = norm_of_difference(got, wanted) / std::max(norm(wanted), 0.1 * floor);
  EXPECT_LE(error, limit) << s.name << ", bf16, " << what;
}

void compare(const Sentence& s, const Values& got, const Values& wanted, DType dtype) {
  ASSERT_EQ(got.gradients.size(), wanted.gradients.size()) << s.name;
  if (dtype == DType::bf16) {
    compare_bf16(s, "y", got.y, wanted.y, largest(wanted.y));
    for (const auto& [name, w] : wanted.gradients)
      compare_bf16(s, name.c_str(), got.gradients.at(name), w, wanted.scale);
    return;
  }
  const double limit = tolerance(s, dtype);
  EXPECT_LE(distance(got.y, wanted.y), limit * std::max(1.0, largest(wanted.y))) << s.name;
  for (const auto& [name, w] : wanted.gradients)
    EXPECT_LE(distance(got.gradients.at(name), w), limit * wanted.scale)
        << s.name << ", " << to_string(dtype) << ", gradient of " << name;
}

void check_cached(const Sentence& s, const Attention& layer, const AttentionCall& call, DType dtype,
                  const Values& wanted, Counts& counts) {
  if (!s.config.cross && !s.config.causal) {
    ++counts.cache_refused;
    EXPECT_NE(refusal([&] { validate_cached(s.config); }).find("key causal"), std::string::npos);
    return;
  }
  std::vector<Integers> cuts = {{4, 1, 6}};
  if (!s.config.prefix) cuts.emplace_back(kTokens, 1);
  for (const Integers& blocks : cuts) {
    const Doubles y = cached(s, layer, call, dtype, blocks);
    if (dtype == DType::bf16)
      compare_bf16(s, "y from the cache", y, wanted.y, largest(wanted.y));
    else
      EXPECT_LE(distance(y, wanted.y), tolerance(s, dtype) * std::max(1.0, largest(wanted.y)))
          << s.name << ", cache";
  }
  ++counts.with_cache;
}

struct Recorder final : AttentionObserver {
  void see(std::int64_t, bool, const AttentionTrace& seen) override { trace = seen; }
  AttentionTrace trace;
};

// The maps, from what the forward pass kept, are those of the book.
void check_maps(const Sentence& s, Attention& layer, AttentionCall call, const book::Facts& facts) {
  const NoGrad no_grad;
  const Tokens t(DType::f64);
  Recorder recorder;
  call.observer = &recorder;
  if (s.config.cross) call.memory = t.memory;
  const Tensor x = with_position(t.x, s, t);
  layer.forward(x, call);
  for (std::int64_t head = 0; head < s.config.heads; ++head) {
    const Tensor all =
        book::weights(s.config, float64(layer), x, s.config.cross ? t.memory : x, facts, head);
    EXPECT_LE(distance(doubles(recorder.trace.weights({head, 1, kTokens - 1})),
                       doubles(ops::contiguous(ops::slice(all, 1, 1, kTokens)))),
              tolerance(s, DType::f64))
        << s.name << ", map of head " << head;
  }
}

void check_sentence(const Sentence& s, Counts& counts) {
  const std::string complaint = refusal([&] { validate(s.config); });
  EXPECT_EQ(complaint.empty(), makes_sense(s)) << s.name << ": " << complaint;
  if (!complaint.empty()) {
    ++counts.refused;
    EXPECT_NE(complaint.find("expected"), std::string::npos);
    EXPECT_EQ(refusal([&] { make_attention(s.config); }), complaint);
    return;
  }
  const book::Facts facts = facts_of(s.mask);
  Values wanted;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Attention layer = make_attention(s.config, parameter_type(dtype));
    const bool positive = wants_positive(s, dtype);
    randomise(layer, dtype, positive);
    if (dtype == DType::f64 || positive) wanted = by_the_book(s, facts, float64(layer), positive);
    const AttentionCall call = call_of(s.mask, facts);
    compare(s, by_the_layer(s, layer, call, dtype), wanted, dtype);
    if (dtype == DType::f64) check_maps(s, layer, call, facts);
    ++counts.ran;
    check_cached(s, layer, call, dtype, wanted, counts);
  }
}

class Grammar : public testing::TestWithParam<Score> {};

TEST_P(Grammar, EverySentenceIsRightOrRefused) {
  Counts counts;
  for_each_sentence(GetParam(), [&](const Sentence& s) {
    if (!testing::Test::HasFailure()) check_sentence(s, counts);
  });
  std::printf(
      "%s: %lld combinations with gradients, %lld of them with a cache as well; %lld "
      "refused, and %lld for a cache\n",
      std::string(to_string(GetParam())).c_str(), static_cast<long long>(counts.ran),
      static_cast<long long>(counts.with_cache), static_cast<long long>(counts.refused),
      static_cast<long long>(counts.cache_refused));
  EXPECT_GE(counts.ran, 1000);
}

INSTANTIATE_TEST_SUITE_P(Scores, Grammar,
                         testing::Values(Score::scaled_dot, Score::multiplicative, Score::concat,
                                         Score::additive),
                         [](const auto& score) {
                           std::string name(to_string(score.param));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace heddle::nn
