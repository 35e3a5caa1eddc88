#include <gtest/gtest.h>

#include "model/test_support.h"

namespace heddle::model {
namespace {

void add_seq2seq(std::vector<Variant>& out) {
  const auto add = [&](const std::string& name, const auto& change) {
    ModelConfig c = small(Kind::rnn_seq2seq, Task::translate);
    change(c);
    out.push_back({"rnn-seq2seq " + name, c});
  };
  for (const nn::Score score :
       {nn::Score::scaled_dot, nn::Score::multiplicative, nn::Score::concat, nn::Score::additive})
    add(std::string(to_string(score)), [&](ModelConfig& c) { c.attention.score = score; });
  add("other vocabulary, deeper decoder", [](ModelConfig& c) {
    c.sizes.target_vocabulary = 13;
    c.decoder_layers = 3;
    c.tied = true;
  });
  add("shallow decoder, heads, sinks", [](ModelConfig& c) {
    c.decoder_layers = 1;
    c.attention.heads = 4;
    c.attention.kv_heads = 2;
    c.attention.sinks = true;
    c.tied = true;
  });
}

// Every recurrent kind, and on each of them the axes that change the computation.
std::vector<Variant> recurrent_variants() {
  std::vector<Variant> out;
  const std::vector<std::pair<Kind, Task>> kinds = {{Kind::rnn, Task::language},
                                                    {Kind::birnn, Task::tag},
                                                    {Kind::birnn, Task::language},
                                                    {Kind::rnn_seq2seq, Task::translate}};
  for (const auto& both : kinds) {
    const Kind kind = both.first;
    const Task task = both.second;
    const std::string base = std::string(to_string(kind)) + "/" + std::string(to_string(task));
    const auto add = [&](const char* name, const auto& change) {
      ModelConfig c = small(kind, task);
      change(c);
      out.push_back({base + " " + name, c});
    };
    add("plain", [](ModelConfig&) {});
    add("one layer without bias", [](ModelConfig& c) {
      c.layers = 1;
      c.bias = false;
      c.scale_embedding = false;
    });
    add("residual", [](ModelConfig& c) { c.residual = true; });
    add("residual post rms", [](ModelConfig& c) {
      c.residual = true;
      c.norm = nn::NormKind::rms;
      c.norm_place = nn::NormPlace::post;
      c.tied = c.generates();
    });
  }
  add_seq2seq(out);
  return out;
}

// The tokens that generation is fed with.
Tensor written_of(const ModelConfig& c, const Batch& batch) {
  return c.task == Task::translate ? batch.target_tokens : batch.tokens;
}

TEST(RecurrentModels, GradientsOfWholeModelsAgreeWithDifferences) {
  for (const Variant& v : recurrent_variants()) {
    const auto model = build_f64(v.config);
    expect_gradient(*model, random_batch(v.config), pass_f64(), v.name);
  }
}

TEST(RecurrentModels, DropoutIsTheSameForTheSameKeyAndDifferentiable) {
  for (Variant v : recurrent_variants()) {
    v.config.dropout = v.config.embedding_dropout = 0.3;
    if (v.config.kind == Kind::rnn_seq2seq) v.config.attention.dropout = 0.3;
    expect_dropout(v.config, v.name);
  }
}

TEST(RecurrentModels, RecomputationChangesNothing) {
  for (Variant v : recurrent_variants()) {
    v.config.dropout = 0.2;
    expect_recomputation(v.config, v.name, 1e-13);
  }
}

// Other tokens after a sequence's end change neither the loss nor any visible logit.
TEST(RecurrentModels, PaddingChangesNothingThatCounts) {
  for (const Variant& v : recurrent_variants()) {
    const auto model = build_f64(v.config);
    Batch batch = random_batch(v.config);
    batch.lengths = lengths_of({6, 4});
    const NoGrad no_grad;
    const double before = model->loss(batch, pass_f64(), 0).total.item();
    const Tensor all = model->logits(batch, pass_f64());
    for (Tensor* tokens : {&batch.tokens, &batch.target_tokens}) {
      if (!tokens->defined()) continue;
      auto* ids = tokens->mutable_data<std::int32_t>();
      for (const std::int64_t i : {10, 11}) ids[i] = (ids[i] + 1) % 11;
    }
    EXPECT_EQ(before, model->loss(batch, pass_f64(), 0).total.item()) << v.name;
    const Tensor after = model->logits(batch, pass_f64());
    const auto seen = [](const Tensor& x, std::int64_t b, std::int64_t tokens) {
      return ops::slice(ops::slice(x, 0, b, b + 1), 1, 0, tokens);
    };
    EXPECT_EQ(distance(seen(all, 0, 6), seen(after, 0, 6)), 0) << v.name;
    EXPECT_EQ(distance(seen(all, 1, 4), seen(after, 1, 4)), 0) << v.name;
  }
}

// A longer batch around a source does not change what is written for it.
TEST(RecurrentModels, ASourceIsTranslatedAloneAsInABatch) {
  for (const Variant& v : recurrent_variants()) {
    if (v.config.task != Task::translate) continue;
    const auto model = build_f64(v.config);
    const Batch batch = random_batch(v.config);
    Batch alone;
    alone.tokens = ops::contiguous(ops::slice(ops::slice(batch.tokens, 0, 1, 2), 1, 0, 4));
    alone.lengths = lengths_of({4});
    alone.target_tokens =
        ops::contiguous(ops::slice(ops::slice(batch.target_tokens, 0, 1, 2), 1, 0, 4));
    const NoGrad no_grad;
    const Tensor all = model->logits(batch, pass_f64());
    const Tensor own = model->logits(alone, pass_f64());
    EXPECT_LE(distance(own, ops::slice(ops::slice(all, 0, 1, 2), 1, 0, 4)), 1e-12) << v.name;
  }
}

// Token t has no influence on what is predicted from the tokens before it.
// Decoder layer i begins with what encoder layer i ended with, or with the last where there are no
// more: a change of one bridge is multiplied by that state. Nothing else of the source reaches the
// decoder here.
TEST(RecurrentModels, EveryDecoderLayerBeginsWithItsOwnState) {
  for (const std::int64_t layers : {2, 3}) {
    ModelConfig c = small(Kind::rnn_seq2seq, Task::translate);
    c.decoder_layers = layers;
    const auto model = build_f64(c);
    const auto parameter = [&](const std::string& name) {
      for (const nn::Parameter& p : model->parameters().all())
        if (p.name == name) return p.tensor;
      ADD_FAILURE() << "no parameter " << name;
      return Tensor();
    };
    Tensor combine = parameter("combine.weight");  // [C, 2 C]: of the context and of the state
    for (std::int64_t row = 0; row < c.width; ++row)
      std::fill_n(combine.mutable_data<double>() + row * 2 * c.width, c.width, 0.0);
    const Batch batch = random_batch(c);
    // The logits when encoder layer e + 1 and all bridges but d have no influence.
    const auto difference = [&](std::int64_t e, std::int64_t d) {
      const NoGrad no_grad;
      std::vector<Doubles> kept;
      for (std::int64_t i = 0; i < layers; ++i) {
        Tensor bridge = parameter("bridge." + std::to_string(i) + ".weight");
        kept.push_back(bridge.to_vector<double>());
        if (i != d) std::fill_n(bridge.mutable_data<double>(), bridge.elements(), 0.0);
      }
      const Tensor before = model->logits(batch, pass_f64());
      double most = 0;
      for (nn::Parameter& p : model->parameters().all()) {
        if (!p.name.starts_with("encoder.layers." + std::to_string(e) + ".")) continue;
        const Doubles values = p.tensor.to_vector<double>();
        for (std::int64_t i = 0; i < p.tensor.elements(); ++i)
          p.tensor.mutable_data<double>()[i] += 0.5;
        most = std::max(most, distance(before, model->logits(batch, pass_f64())));
        std::copy(values.begin(), values.end(), p.tensor.mutable_data<double>());
      }
      for (std::int64_t i = 0; i < layers; ++i) {
        Tensor bridge = parameter("bridge." + std::to_string(i) + ".weight");
        const Doubles& values = kept[static_cast<std::size_t>(i)];
        std::copy(values.begin(), values.end(), bridge.mutable_data<double>());
      }
      return most;
    };
    EXPECT_EQ(difference(1, 0), 0) << "the first layer's state knows nothing of the second";
    for (std::int64_t d = 1; d < layers; ++d) EXPECT_GT(difference(1, d), 1e-3) << d;
  }
}

TEST(RecurrentModels, NoTokenIsSeenBeforeItsTime) {
  for (const Variant& v : recurrent_variants()) {
    if (!v.config.generates()) continue;
    const auto model = build_f64(v.config);
    Batch batch = random_batch(v.config);
    const NoGrad no_grad;
    const Tensor before = model->logits(batch, pass_f64());
    Tensor written = written_of(v.config, batch);
    const std::int64_t changed = 3;
    written.mutable_data<std::int32_t>()[changed] =
        (written.to_vector<std::int32_t>()[changed] + 1) % 11;
    const Tensor after = model->logits(batch, pass_f64());
    const auto first = [](const Tensor& x, std::int64_t from, std::int64_t to) {
      return ops::slice(ops::slice(x, 0, 0, 1), 1, from, to);
    };
    EXPECT_EQ(distance(first(before, 0, changed), first(after, 0, changed)), 0) << v.name;
    for (std::int64_t t = changed; t < 6; ++t)
      EXPECT_GT(distance(first(before, t, t + 1), first(after, t, t + 1)), 1e-6) << v.name;
  }
}

// All tokens but the last of a tagged sentence have an influence on the first tag, and so on.
TEST(RecurrentModels, ATagDependsOnBothSides) {
  const ModelConfig c = small(Kind::birnn, Task::tag);
  const auto model = build_f64(c);
  Batch batch = random_batch(c);
  const NoGrad no_grad;
  const Tensor before = model->logits(batch, pass_f64());
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  tokens[3] = (tokens[3] + 1) % 11;
  const Tensor after = model->logits(batch, pass_f64());
  for (std::int64_t t = 0; t < 6; ++t)
    EXPECT_GT(distance(ops::slice(ops::slice(before, 0, 0, 1), 1, t, t + 1),
                       ops::slice(ops::slice(after, 0, 0, 1), 1, t, t + 1)),
              1e-6)
        << t;
}

TEST(RecurrentModels, GenerationStepByStepEqualsThePass) {
  for (const Variant& v : recurrent_variants()) {
    if (!v.config.generates()) continue;
    const auto model = build_f64(v.config);
    const Batch batch = random_batch(v.config);
    const NoGrad no_grad;
    const Tensor all = model->logits(batch, pass_f64());  // [2, T, V]
    const Tensor written = written_of(v.config, batch);
    const auto state = model->begin(batch, 2, 6, pass_f64());
    std::int64_t done = 0;
    for (const std::int64_t n : {3, 1, 1, 1}) {
      const Tensor next = model->next(*state, ops::slice(written, 1, done, done + n), pass_f64());
      done += n;
      EXPECT_EQ(state->position(), done);
      EXPECT_GT(state->bytes(), 0);
      const Tensor expected = ops::reshape(ops::slice(all, 1, done - 1, done), next.shape());
      // Behind its length the second target of a pair is padding.
      const std::int64_t rows = v.config.task == Task::translate && done > 4 ? 1 : 2;
      EXPECT_LE(distance(ops::slice(next, 0, 0, rows), ops::slice(expected, 0, 0, rows)), 1e-12)
          << v.name << " at " << done;
    }
  }
}

TEST(RecurrentModels, ReorderedSequencesGoOnAsTheOnesTheyWere) {
  for (const Variant& v : recurrent_variants()) {
    if (!v.config.generates()) continue;
    const auto model = build_f64(v.config);
    const Batch batch = random_batch(v.config);
    const Tensor written = written_of(v.config, batch);
    const std::vector<std::int64_t> rows = {1, 0, 1};
    // Swapped before the first step, or after two tokens.
    const auto logits_after = [&](bool early, bool late) {
      const auto state = model->begin(batch, 2, 6, pass_f64());
      if (early) state->reorder(rows);
      Tensor begin = ops::slice(written, 1, 0, 2);
      if (early) begin = Tensor::from<std::int32_t>({3, 2}, {3, 1, 3, 1, 3, 1});
      if (!early && !late) begin = Tensor::from<std::int32_t>({2, 2}, {3, 1, 3, 1});
      if (late) begin = Tensor::from<std::int32_t>({2, 2}, {3, 1, 5, 2});
      model->next(*state, begin, pass_f64());
      if (late) state->reorder(rows);
      return model->next(*state, Tensor::full({early || late ? 3 : 2, 1}, 4, DType::i32),
                         pass_f64());
    };
    const auto row = [](const Tensor& t, std::int64_t i) { return ops::slice(t, 0, i, i + 1); };
    const Tensor plain = logits_after(false, false), early = logits_after(true, false);
    for (const std::int64_t i : {0, 1, 2})
      EXPECT_LE(distance(row(early, i), row(plain, rows[static_cast<std::size_t>(i)])), 1e-12)
          << v.name;
    const Tensor late = logits_after(false, true);
    EXPECT_LE(distance(row(late, 0), row(late, 2)), 1e-12) << v.name;
    EXPECT_LE(distance(row(late, 1), row(plain, 0)), 1e-12) << v.name;
    EXPECT_GT(distance(row(late, 0), row(late, 1)), 1e-6) << v.name;
  }
}

TEST(RecurrentModels, StatesOfOtherModelsAndWrongTokensAreRefused) {
  const auto rnn = build_f64(small(Kind::rnn, Task::language));
  const auto birnn = build_f64(small(Kind::birnn, Task::language));
  const auto tagger = build_f64(small(Kind::birnn, Task::tag));
  const auto pair = build_f64(small(Kind::rnn_seq2seq, Task::translate));
  const nn::Pass pass = pass_f64();
  const auto state = rnn->begin({}, 2, 6, pass);
  const Tensor tokens = Tensor::full({2, 1}, 1, DType::i32);
  EXPECT_THROW(birnn->next(*state, tokens, pass), Error);
  for (const Tensor& wrong :
       {Tensor::full({3, 1}, 1, DType::i32), Tensor::full({2, 0}, 1, DType::i32),
        Tensor::full({2}, 1, DType::i32), Tensor::full({2, 1}, 1, DType::i64), Tensor()})
    try {
      rnn->next(*state, wrong, pass);
      ADD_FAILURE() << wrong.describe();
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), "argument tokens") << e.what();
      EXPECT_EQ(e.expected(), "i32 [2, 1 or more]") << e.what();
    }
  EXPECT_NO_THROW(rnn->next(*state, tokens, pass));
  const std::vector<std::int64_t> missing = {0, 2};
  EXPECT_THROW(state->reorder(missing), Error);
  EXPECT_THROW(birnn->begin({}, 2, 6, pass)->reorder(missing), Error);
  EXPECT_THROW(tagger->begin({}, 2, 6, pass), Error);
  EXPECT_THROW(pair->begin({}, 2, 6, pass), Error);
}

TEST(RecurrentModels, HalfPrecisionStaysNear) {
  for (const Variant& v : recurrent_variants()) {
    const auto model = build_model(v.config, {.seed = 3});
    const Batch batch = random_batch(v.config);
    nn::Pass rough;
    rough.precision = DType::bf16;
    const double full = model->loss(batch, {}, 0).total.item();
    EXPECT_NEAR(full, model->loss(batch, rough, 0).total.item(), 0.1) << v.name;
  }
}

// The meta device runs a training step: shapes and bytes, no numbers.
TEST(RecurrentModels, RunOnTheMetaDevice) {
  for (const Variant& v : recurrent_variants()) {
    BuildOptions options;
    options.device = Device::meta;
    const auto model = build_model(v.config, options);
    const auto real = build_model(v.config, {});
    EXPECT_EQ(model->parameters().count(), real->parameters().count());
    Batch batch;
    const Batch numbers = random_batch(v.config);
    const auto shape = [](const Tensor& t) {
      return t.defined() ? Tensor::empty(t.shape(), t.dtype(), Device::meta) : t;
    };
    batch.tokens = shape(numbers.tokens);
    batch.lengths = shape(numbers.lengths);
    batch.target_tokens = shape(numbers.target_tokens);
    batch.target_lengths = shape(numbers.target_lengths);
    batch.targets = shape(numbers.targets);
    Tape tape;
    tape.backward(model->loss(batch, {}, 0).total);
    for (nn::Parameter& p : model->parameters().all())
      EXPECT_TRUE(p.tensor.grad().defined()) << v.name << " " << p.name;
  }
}

TEST(RecurrentModels, KeysThatWouldBeIgnoredAreRefusedWithTheReason) {
  const auto refused = [](Kind kind, Task task, const auto& change, const char* key) {
    ModelConfig c = small(kind, task);
    ASSERT_EQ(refusal(c), "");
    change(c);
    const std::string complaint = refusal(c);
    EXPECT_NE(complaint.find(key), std::string::npos) << key << ": " << complaint;
    EXPECT_NE(complaint.find("expected"), std::string::npos) << key;
  };
  const std::vector<std::pair<Kind, Task>> kinds = {{Kind::rnn, Task::language},
                                                    {Kind::birnn, Task::tag},
                                                    {Kind::birnn, Task::language},
                                                    {Kind::rnn_seq2seq, Task::translate}};
  for (const auto& both : kinds) {
    const Kind kind = both.first;
    const Task task = both.second;
    const auto each = [&](const auto& change, const char* key) {
      refused(kind, task, change, key);
    };
    each([](ModelConfig& c) { c.ffn = nn::FfnKind::relu; }, "ffn");
    each([](ModelConfig& c) { c.ffn_width = 7; }, "ffn_width");
    each([](ModelConfig& c) { c.moe = nn::MoeOptions{}; }, "moe");
    each([](ModelConfig& c) { c.norm = nn::NormKind::rms; }, "norm");
    each([](ModelConfig& c) { c.norm_place = nn::NormPlace::post; }, "norm_place");
    each([](ModelConfig& c) { c.norm_epsilon = 1e-3; }, "norm_epsilon");
    each([](ModelConfig& c) { c.pooling = Pooling::mean; }, "pooling");
    each([](ModelConfig& c) { c.init_branches = false; }, "init_branches");
    each([](ModelConfig& c) { c.attention.bias = true; }, "attention.bias");
    each([](ModelConfig& c) { c.attention.position = nn::RopePosition{}; }, "position");
    each([](ModelConfig& c) { c.attention.position = nn::T5Position{}; }, "position");
    each([](ModelConfig& c) { c.attention.position = nn::AlibiPosition{}; }, "position");
    each([](ModelConfig& c) { c.attention.position = nn::SinusoidalPosition{}; }, "position");
    each([](ModelConfig& c) { c.attention.position = nn::LearnedPosition{}; }, "position");
    each([](ModelConfig& c) { c.attention.look_back = 3; }, "look_back");
    each([](ModelConfig& c) { c.attention.look_ahead = 3; }, "look_ahead");
    each([](ModelConfig& c) { c.attention.causal = true; }, "causal");
    each([](ModelConfig& c) { c.attention.prefix = true; }, "prefix");
    each([](ModelConfig& c) { c.patch = 2; }, "patch");
    if (kind != Kind::rnn) each([](ModelConfig& c) { c.width = 7; }, "width");
    if (kind == Kind::rnn_seq2seq) continue;
    each([](ModelConfig& c) { c.attention.score = nn::Score::additive; }, "score");
    each([](ModelConfig& c) { c.attention.heads = 2; }, "heads");
    each([](ModelConfig& c) { c.attention.kv_heads = 1; }, "kv_heads");
    each([](ModelConfig& c) { c.attention.head_width = 4; }, "head_width");
    each([](ModelConfig& c) { c.attention.score_width = 4; }, "score_width");
    each([](ModelConfig& c) { c.attention.softcap = 4; }, "softcap");
    each([](ModelConfig& c) { c.attention.scale = 4; }, "scale");
    each([](ModelConfig& c) { c.attention.dropout = 0.1; }, "dropout");
    each([](ModelConfig& c) { c.attention.sinks = true; }, "sinks");
    each([](ModelConfig& c) { c.attention.normaliser = ops::Normaliser::relu; }, "normaliser");
    each([](ModelConfig& c) { c.decoder_layers = 2; }, "decoder_layers");
  }
  refused(Kind::birnn, Task::language, [](ModelConfig& c) { c.sizes.context = 300; }, "context");
  refused(
      Kind::rnn_seq2seq, Task::translate, [](ModelConfig& c) { c.attention.heads = 3; }, "heads");
  refused(Kind::decoder, Task::language, [](ModelConfig& c) { c.residual = true; }, "residual");
}

}  // namespace
}  // namespace heddle::model
