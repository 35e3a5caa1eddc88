#include <gtest/gtest.h>

#include <functional>

#include "model/test_axes.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

// Every kind, and on each of them the axes that change the computation.
std::vector<Variant> transformer_variants() {
  const std::vector<std::pair<Kind, Task>> kinds = {
      {Kind::decoder, Task::language},          {Kind::encoder, Task::tag},
      {Kind::encoder, Task::classify},          {Kind::encoder, Task::masked},
      {Kind::encoder_decoder, Task::translate}, {Kind::vit, Task::classify}};
  std::vector<Variant> out;
  for (const auto& both : kinds) {
    const Kind kind = both.first;
    const Task task = both.second;
    const std::string base = std::string(to_string(kind)) + "/" + std::string(to_string(task));
    const auto add = [&](const char* name, const std::function<void(ModelConfig&)>& change) {
      ModelConfig c = small(kind, task);
      change(c);
      out.push_back({base + " " + name, c});
    };
    add("plain", [](ModelConfig&) {});
    add("post rms swiglu", [](ModelConfig& c) {
      c.norm_place = nn::NormPlace::post;
      c.norm = nn::NormKind::rms;
      c.ffn = nn::FfnKind::swiglu;
      c.bias = false;
    });
    add("learned mean relu", [](ModelConfig& c) {
      c.attention.position = nn::LearnedPosition{};
      c.ffn = nn::FfnKind::relu;
      c.pooling = Pooling::mean;
      c.norm = nn::NormKind::rms;
    });
    add("sinusoidal", [](ModelConfig& c) { c.attention.position = nn::SinusoidalPosition{}; });
    add("rope gqa", [](ModelConfig& c) {
      c.attention.position = nn::RopePosition{};
      c.attention.kv_heads = 1;
      c.attention.head_width = 6;
    });
    add("t5 additive sinks", [](ModelConfig& c) {
      c.attention.position = nn::T5Position{8, 6};
      c.attention.score = nn::Score::additive;
      c.attention.sinks = true;
    });
    add("moe", [](ModelConfig& c) { c.moe = nn::MoeOptions{4, 2, std::nullopt, 1, 0.1}; });
    add("moe capacity", [](ModelConfig& c) { c.moe = nn::MoeOptions{4, 2, 0.5, 0, 0.1}; });
    if (kind == Kind::decoder || kind == Kind::encoder_decoder || task == Task::masked)
      add("tied window", [](ModelConfig& c) {
        c.tied = true;
        c.attention.look_back = 2;
      });
    if (kind == Kind::decoder)
      add("prefix t5", [](ModelConfig& c) {
        c.attention.prefix = true;
        c.attention.position = nn::T5Position{8, 6};
      });
    add_axes(kind, add);
  }
  return out;
}

TEST(Transformers, GradientsOfWholeModelsAgreeWithDifferences) {
  for (const Variant& v : transformer_variants()) {
    const auto model = build_f64(v.config);
    nn::Pass pass = pass_f64();
    expect_gradient(*model, random_batch(v.config), pass, v.name);
  }
}

TEST(Transformers, DropoutIsTheSameForTheSameKeyAndDifferentiable) {
  for (Variant v : transformer_variants()) {
    v.config.dropout = v.config.embedding_dropout = v.config.attention.dropout = 0.3;
    expect_dropout(v.config, v.name);
  }
}

TEST(Transformers, RecomputationChangesNothing) {
  for (Variant v : transformer_variants()) {
    v.config.dropout = 0.2;
    // A parameter that several layers share gets its gradient in another order of summation.
    const auto* t5 = std::get_if<nn::T5Position>(&v.config.attention.position);
    const bool shared = v.config.kind == Kind::encoder_decoder || (t5 != nullptr && t5->shared);
    expect_recomputation(v.config, v.name, shared ? 1e-14 : 0);
  }
}

TEST(Transformers, PaddingChangesNothingThatCounts) {
  for (const Variant& v : transformer_variants()) {
    if (v.config.kind == Kind::vit || v.config.task == Task::language) continue;
    const auto model = build_f64(v.config);
    Batch batch = random_batch(v.config);
    const double before = model->loss(batch, pass_f64(), 0).total.item();
    auto* tokens = batch.tokens.mutable_data<std::int32_t>();
    const std::int64_t last = batch.tokens.elements() - 1;
    tokens[last] = (tokens[last] + 1) % 11;
    if (batch.target_tokens.defined()) {
      auto* written = batch.target_tokens.mutable_data<std::int32_t>();
      written[last] = (written[last] + 1) % 11;
    }
    EXPECT_NEAR(before, model->loss(batch, pass_f64(), 0).total.item(), 1e-12) << v.name;
  }
}

TEST(Transformers, GenerationStepByStepEqualsThePass) {
  for (const Variant& v : transformer_variants()) {
    if (!v.config.generates()) continue;
    const auto model = build_f64(v.config);
    Batch batch = random_batch(v.config);
    // The first tokens that a state is given are its prompt.
    if (v.config.attention.prefix) batch.prefix_lengths = lengths_of({3, 3});
    const NoGrad no_grad;
    const Tensor all = model->logits(batch, pass_f64());  // [2, T, V]
    const Tensor written = v.config.kind == Kind::decoder ? batch.tokens : batch.target_tokens;
    const auto state = model->begin(batch, 2, 6, pass_f64());
    std::int64_t done = 0;
    for (const std::int64_t n : {3, 1, 1, 1}) {
      const Tensor next = model->next(*state, ops::slice(written, 1, done, done + n), pass_f64());
      done += n;
      EXPECT_EQ(state->position(), done);
      const Tensor expected = ops::reshape(ops::slice(all, 1, done - 1, done), next.shape());
      // Behind its length the second target of a pair is padding.
      const std::int64_t rows = v.config.kind == Kind::encoder_decoder && done > 4 ? 1 : 2;
      EXPECT_LE(distance(ops::slice(next, 0, 0, rows), ops::slice(expected, 0, 0, rows)), 1e-10)
          << v.name << " at " << done;
    }
  }
}

// Both kinds that write: what they keep does not grow with the sequence, and a long prompt, which
// goes around the rings, gives what its tokens give one by one.
TEST(Transformers, CachesOfAWindowAreRings) {
  for (const auto& [kind, task] :
       {std::pair{Kind::decoder, Task::language}, {Kind::encoder_decoder, Task::translate}}) {
    ModelConfig c = small(kind, task);
    c.layers = 1;
    c.attention.look_back = 3;
    c.attention.position = nn::T5Position{8, 6};
    const auto model = build_f64(c);
    const Batch source = random_batch(c);
    const Tensor written = random_ids({2, 600}, 11, 8);
    const auto begun = [&](std::int64_t positions) {
      auto state = model->begin(source, 2, positions, pass_f64());
      model->next(*state, ops::slice(written, 1, 0, 1), pass_f64());
      return state;
    };
    EXPECT_EQ(begun(5000)->most_bytes(), begun(50000)->most_bytes()) << to_string(kind);
    const auto at_once = begun(600), one_by_one = begun(600);
    const Tensor last = model->next(*at_once, ops::slice(written, 1, 1, 600), pass_f64());
    Tensor expected;
    for (std::int64_t t = 1; t < 600; ++t)
      expected = model->next(*one_by_one, ops::slice(written, 1, t, t + 1), pass_f64());
    EXPECT_LE(distance(last, expected), 1e-10) << to_string(kind);
    EXPECT_EQ(at_once->bytes(), at_once->most_bytes()) << "all of the ring was written";
    EXPECT_EQ(at_once->most_bytes(), begun(50000)->most_bytes());
  }
}

// Each layer keeps as much as its own window shows.
TEST(Transformers, LocalLayersKeepTheirWindowAndGlobalOnesAll) {
  ModelConfig c = small(Kind::decoder, Task::language);
  local_and_global(c);
  const auto model = build_f64(c);
  const Tensor written = random_ids({2, 600}, 11, 8);
  const auto at_once = model->begin({}, 2, 600, pass_f64());
  const auto one_by_one = model->begin({}, 2, 600, pass_f64());
  const Tensor last = model->next(*at_once, written, pass_f64());
  Tensor expected;
  for (std::int64_t t = 0; t < 600; ++t)
    expected = model->next(*one_by_one, ops::slice(written, 1, t, t + 1), pass_f64());
  EXPECT_LE(distance(last, expected), 1e-10);
  // 2 sequences, keys and values, 8 numbers of 8 bytes; the window is 1 + a block of 256.
  EXPECT_EQ(at_once->most_bytes(), (257 + 600) * 2 * 2 * 8 * 8);
  Batch batch;
  batch.tokens = written;
  const NoGrad no_grad;
  const Tensor all = model->logits(batch, pass_f64());
  EXPECT_LE(distance(last, ops::reshape(ops::slice(all, 1, 599, 600), last.shape())), 1e-10);
}

// With the same configuration for every layer a pattern changes nothing.
TEST(Transformers, APatternOfEqualLayersIsNone) {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.attention.position = nn::RopePosition{};
  const Doubles plain = doubles(build_f64(c)->logits(random_batch(c), pass_f64()));
  const nn::LayerAttention same = nn::layer_part(c.attention);
  c.attention_layers = {same, same, same};
  EXPECT_EQ(doubles(build_f64(c)->logits(random_batch(c), pass_f64())), plain);
  local_and_global(c);
  EXPECT_NE(doubles(build_f64(c)->logits(random_batch(c), pass_f64())), plain);
}

// Memory follows the tokens that are there, not those that may come. The bits are those of a cache
// that had room for all from the start.
TEST(Transformers, CachesGrowWithWhatTheyHold) {
  constexpr std::int64_t kWritten = 300, kMost = std::int64_t{1} << 24;
  for (const auto& [kind, task] :
       {std::pair{Kind::decoder, Task::language}, {Kind::encoder_decoder, Task::translate}}) {
    ModelConfig c = small(kind, task);
    c.attention.position = nn::T5Position{8, 6};
    c.decoder_layers = kind == Kind::decoder ? 0 : 3;
    const auto model = build_f64(c);
    const Batch source = random_batch(c);
    const Tensor written = random_ids({2, kWritten}, 11, 8);
    const auto snug = model->begin(source, 2, kWritten, pass_f64());
    const auto vast = model->begin(source, 2, kMost, pass_f64());
    // 2 sequences, keys and values, 8 numbers of 8 bytes in each layer.
    const std::int64_t token = 2 * 2 * 8 * 8 * c.layers_of_decoder();
    EXPECT_EQ(vast->most_bytes(), kMost * token) << to_string(kind);
    EXPECT_LE(vast->bytes(), 64 * token);
    model->next(*snug, ops::slice(written, 1, 0, 1), pass_f64());
    const std::int64_t memory = snug->bytes() - std::min<std::int64_t>(64, kWritten) * token;
    model->next(*vast, ops::slice(written, 1, 0, 1), pass_f64());
    for (std::int64_t t = 1; t < kWritten; ++t) {
      const Tensor next = ops::slice(written, 1, t, t + 1);
      const Tensor a = model->next(*snug, next, pass_f64());
      const Tensor b = model->next(*vast, next, pass_f64());
      ASSERT_EQ(doubles(a), doubles(b)) << to_string(kind) << " at " << t;
      ASSERT_GE(vast->bytes() - memory, (t + 1) * token);
      ASSERT_LE(vast->bytes() - memory, std::max<std::int64_t>(64, 2 * (t + 1)) * token);
    }
    EXPECT_EQ(snug->bytes() - memory, kWritten * token) << "not one row more than may come";
    const std::vector<std::int64_t> rows = {1, 0, 1};
    vast->reorder(rows);
    EXPECT_EQ(vast->position(), kWritten);
    EXPECT_EQ(doubles(model->next(*vast, Tensor::full({3, 1}, 4, DType::i32), pass_f64())).size(),
              3u * 11);
  }
}

// logits of a batch whose token `at` of the first sequence is another one, against those before:
// the positions that notice.
std::vector<std::int64_t> noticing(const Model& model, Batch batch, std::int64_t at) {
  const Tensor before = model.logits(batch, pass_f64());  // [2, T, V]
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  tokens[at] = (tokens[at] + 1) % 11;
  const Tensor after = model.logits(batch, pass_f64());
  std::vector<std::int64_t> changed;
  for (std::int64_t i = 0; i < before.size(1); ++i) {
    const auto of_first = [i](const Tensor& t) {
      return ops::slice(ops::slice(t, 0, 0, 1), 1, i, i + 1);
    };
    if (distance(of_first(before), of_first(after)) > 1e-9) changed.push_back(i);
  }
  return changed;
}

TEST(Transformers, DocumentsDoNotSeeEachOther) {
  for (const Kind kind : {Kind::decoder, Kind::encoder}) {
    const Task task = kind == Kind::decoder ? Task::language : Task::masked;
    const auto model = build_f64(small(kind, task));
    Batch batch = random_batch(model->config());
    batch.documents = Tensor::from<std::int64_t>({2, 6}, {0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0});
    using Positions = std::vector<std::int64_t>;
    const bool causal = kind == Kind::decoder;
    EXPECT_EQ(noticing(*model, batch, 1), causal ? (Positions{1, 2}) : (Positions{0, 1, 2}));
    EXPECT_EQ(noticing(*model, batch, 3), (Positions{3, 4}));
    expect_gradient(*model, batch, pass_f64(), "documents");
  }
}

TEST(Transformers, PromptsAreSeenBothWaysAndTheRestIsCausal) {
  ModelConfig c = small(Kind::decoder, Task::language);
  c.attention.prefix = true;
  const auto model = build_f64(c);
  Batch batch = random_batch(c);
  using Positions = std::vector<std::int64_t>;
  batch.prefix_lengths = lengths_of({0, 3});
  EXPECT_EQ(noticing(*model, batch, 2), (Positions{2, 3, 4, 5}));  // no prompt: causal
  batch.prefix_lengths = lengths_of({3, 0});
  EXPECT_EQ(noticing(*model, batch, 2), (Positions{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(noticing(*model, batch, 3), (Positions{3, 4, 5}));
  expect_gradient(*model, batch, pass_f64(), "prefix");
}

// A batch that does not say what its prompts are would be read as another one than generation's.
TEST(Transformers, PromptsThatAreNotToldAreRefused) {
  const auto complaint = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  ModelConfig c = small(Kind::decoder, Task::language);
  const auto plain = build_f64(c);
  c.attention.prefix = true;
  const auto model = build_f64(c);
  Batch batch = random_batch(c);
  EXPECT_EQ(complaint([&] { model->logits(batch, pass_f64()); }), "");
  EXPECT_NE(complaint([&] { plain->logits(batch, pass_f64()); }).find("prefix"), std::string::npos);
  batch.prefix_lengths = {};
  for (const auto& call : {std::function<void()>([&] { model->logits(batch, pass_f64()); }),
                           std::function<void()>([&] { model->loss(batch, pass_f64(), 0); })})
    EXPECT_NE(complaint(call).find("prefix_lengths"), std::string::npos);

  // Pieces of a prompt: one token at a time may be what the model wrote, more may not.
  const auto next = [&](DecodeState& state, std::int64_t n) {
    return complaint([&] { model->next(state, Tensor::zeros({2, n}, DType::i32), pass_f64()); });
  };
  const auto untold = model->begin({}, 2, 6, pass_f64());
  EXPECT_EQ(next(*untold, 2), "");
  EXPECT_NE(next(*untold, 2).find("at once"), std::string::npos);
  EXPECT_EQ(untold->position(), 2) << "a refused call changes nothing";
  EXPECT_EQ(next(*untold, 1), "");
  batch.prefix_lengths = lengths_of({3, 1});
  const auto told = model->begin(batch, 2, 6, pass_f64());
  EXPECT_NE(next(*told, 2).find("whole prefix"), std::string::npos);
  EXPECT_EQ(next(*told, 3), "");
  EXPECT_EQ(next(*told, 2), "");
}

TEST(Transformers, ReorderedSequencesGoOnAsTheOnesTheyWere) {
  for (const Variant& v : transformer_variants()) {
    if (!v.config.generates()) continue;
    const auto model = build_f64(v.config);
    const Batch batch = random_batch(v.config);
    const Tensor written = v.config.kind == Kind::decoder ? batch.tokens : batch.target_tokens;
    const auto logits_after = [&](bool swapped) {
      const auto state = model->begin(batch, 2, 6, pass_f64());
      model->next(*state, ops::slice(written, 1, 0, 2), pass_f64());
      const std::vector<std::int64_t> rows = {1, 0, 1};
      if (swapped) state->reorder(rows);
      const Tensor token = Tensor::full({swapped ? 3 : 2, 1}, 4, DType::i32);
      return model->next(*state, token, pass_f64());
    };
    const Tensor plain = logits_after(false), swapped = logits_after(true);
    const auto row = [](const Tensor& t, std::int64_t i) { return ops::slice(t, 0, i, i + 1); };
    EXPECT_LE(distance(row(swapped, 0), row(plain, 1)), 1e-12) << v.name;
    EXPECT_LE(distance(row(swapped, 1), row(plain, 0)), 1e-12) << v.name;
    EXPECT_LE(distance(row(swapped, 2), row(plain, 1)), 1e-12) << v.name;
  }
}

TEST(Transformers, GenerationRefusesTokensAndStatesThatDoNotFit) {
  const ModelConfig decoder = small(Kind::decoder, Task::language);
  const ModelConfig pair = small(Kind::encoder_decoder, Task::translate);
  const auto one = build_f64(decoder), two = build_f64(pair);
  const auto state = one->begin({}, 2, 6, pass_f64());
  const auto other = two->begin(random_batch(pair), 2, 6, pass_f64());
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const Tensor good = Tensor::zeros({2, 1}, DType::i32);
  EXPECT_TRUE(refused([&] { one->next(*state, Tensor::zeros({3, 1}, DType::i32), pass_f64()); }));
  EXPECT_TRUE(refused([&] { one->next(*state, Tensor::zeros({2, 0}, DType::i32), pass_f64()); }));
  EXPECT_TRUE(refused([&] { one->next(*state, Tensor::zeros({2, 1}), pass_f64()); }));
  EXPECT_TRUE(refused([&] { one->next(*other, good, pass_f64()); }));
  EXPECT_TRUE(refused([&] { two->next(*state, good, pass_f64()); }));
  EXPECT_TRUE(refused([&] { two->begin({}, 2, 6, pass_f64()); }));
  EXPECT_FALSE(refused([&] { one->next(*state, good, pass_f64()); }));
}

TEST(Transformers, HalfPrecisionStaysNear) {
  for (const Variant& v : transformer_variants()) {
    const auto model = build_model(v.config, {.seed = 3});
    const Batch batch = random_batch(v.config);
    nn::Pass rough;
    rough.precision = DType::bf16;
    const double full = model->loss(batch, {}, 0).total.item();
    EXPECT_NEAR(full, model->loss(batch, rough, 0).total.item(), 0.1) << v.name;
  }
}

TEST(Transformers, VariantsBeginWithTheSameWeightsWhereTheyHaveTheSameParts) {
  ModelConfig a = small(Kind::decoder, Task::language), b = a;
  b.attention.kv_heads = 1;
  b.layers = 3;
  b.init_branches = a.init_branches = false;
  const auto first = build_model(a, {.seed = 4}), second = build_model(b, {.seed = 4});
  int equal = 0;
  for (const nn::Parameter& p : first->parameters().all())
    for (const nn::Parameter& q : second->parameters().all())
      if (p.name == q.name && p.tensor.shape() == q.tensor.shape()) {
        EXPECT_EQ(doubles(p.tensor), doubles(q.tensor)) << p.name;
        ++equal;
      }
  EXPECT_EQ(equal, 28);
}

TEST(Transformers, ModelsThatMakeNoSenseAreRefusedWithTheReason) {
  const auto refused = [](Kind kind, Task task, const auto& change, const char* key) {
    ModelConfig c = small(kind, task);
    ASSERT_EQ(refusal(c), "");
    change(c);
    const std::string complaint = refusal(c);
    EXPECT_NE(complaint.find(key), std::string::npos) << key << ": " << complaint;
    EXPECT_NE(complaint.find("expected"), std::string::npos) << key;
  };
  const auto decoder = [&](const auto& change, const char* key) {
    refused(Kind::decoder, Task::language, change, key);
  };
  decoder([](ModelConfig& c) { c.layers = 0; }, "layers");
  decoder([](ModelConfig& c) { c.layers = 100000; }, "layers");
  decoder([](ModelConfig& c) { c.width = 0; }, "width");
  decoder([](ModelConfig& c) { c.task = Task::tag; }, "task");
  decoder([](ModelConfig& c) { c.patch = 2; }, "patch");
  decoder([](ModelConfig& c) { c.decoder_layers = 2; }, "decoder_layers");
  decoder([](ModelConfig& c) { c.dropout = 1; }, "dropout");
  decoder([](ModelConfig& c) { c.embedding_dropout = -0.1; }, "embedding_dropout");
  decoder([](ModelConfig& c) { c.attention.heads = 3; }, "heads");
  decoder([](ModelConfig& c) { c.attention.look_ahead = 3; }, "look_ahead");
  decoder([](ModelConfig& c) { c.norm_epsilon = 0; }, "norm_epsilon");
  decoder([](ModelConfig& c) { c.sizes.vocabulary = 0; }, "vocabulary");
  decoder([](ModelConfig& c) { c.sizes.context = 0; }, "context");
  decoder([](ModelConfig& c) { c.moe = nn::MoeOptions{.experts = 2, .active = 3}; }, "active");
  decoder([](ModelConfig& c) { c.ffn_width = -1; }, "ffn_width");
  refused(Kind::encoder, Task::tag, [](ModelConfig& c) { c.attention.prefix = true; }, "prefix");
  refused(Kind::encoder, Task::tag, [](ModelConfig& c) { c.tied = true; }, "tied");
  refused(Kind::encoder, Task::tag, [](ModelConfig& c) { c.sizes.classes = 0; }, "classes");
  refused(Kind::encoder, Task::tag, [](ModelConfig& c) { c.task = Task::language; }, "task");
  refused(Kind::vit, Task::classify, [](ModelConfig& c) { c.patch = 4; }, "patch");
  refused(Kind::vit, Task::classify, [](ModelConfig& c) { c.patch = 0; }, "patch");
  decoder([](ModelConfig& c) { c.shared_embedding = false; }, "shared_embedding");
  refused(
      Kind::encoder_decoder, Task::translate,
      [](ModelConfig& c) {
        c.sizes.target_vocabulary = 5;
        c.shared_embedding = true;
      },
      "shared_embedding");
  refused(
      Kind::encoder_decoder, Task::translate, [](ModelConfig& c) { c.attention.look_ahead = 2; },
      "look_ahead");
}

}  // namespace
}  // namespace heddle::model
