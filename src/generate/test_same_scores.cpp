// The same tokens, read in every possible way: step by step with a cache, in pieces, all at once as
// in training, again for each token, by scores() and by inspect(). The visible tokens are the same,
// so the scores are, for every kind that generates, every mask, position and score.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generate/decode/generate.h"
#include "generate/inspect_model.h"
#include "generate/scores.h"
#include "heddle/error.h"
#include "model/prompt.h"
#include "model/test_support.h"
#include "text/train.h"

namespace heddle::generate {
namespace {

using model::Kind;
using model::ModelConfig;
using model::Variant;
using Ids = std::vector<std::int32_t>;
using ScoreRows = std::vector<std::vector<double>>;  // [tokens read, V]; empty rows: not asked for

constexpr std::size_t kGiven = 4;
const Ids kSentence = {4, 6, 1, 9, 10, 3, 6, 8, 5};  // ids of one-letter words, and of "<s>"
const Ids kOther = {7, 4, 4, 1, 8, 9, 3, 10, 6};

std::shared_ptr<const text::Tokenizer> letters() {
  text::TokenizerSpec spec;
  spec.kind = text::TokenizerSpec::Kind::word;
  spec.minimum_count = 1;
  const std::vector<std::string_view> texts = {"a b c d e f g"};
  return text::train_tokenizer(spec, texts,
                               {.pad = true, .begin = true, .end = true, .unknown = true});
}

std::shared_ptr<const data::Codec> codec_of(model::Task task) {
  data::CodecParts parts;
  parts.task = task;
  parts.length = 12;
  parts.source = letters();
  return std::make_shared<data::Codec>(std::move(parts));
}

struct Mask {
  const char* name;
  std::function<void(nn::AttentionConfig&)> set;
};

const std::vector<Mask>& masks() {
  using A = nn::AttentionConfig;
  static const std::vector<Mask> all = {
      {"causal", [](A&) {}},
      {"look_back", [](A& a) { a.look_back = 2; }},
      {"sinks", [](A& a) { a.sinks = true; }},
      {"relu", [](A& a) { a.normaliser = ops::Normaliser::relu; }},
      {"look_back sinks", [](A& a) { a.look_back = 2, a.sinks = true; }},
      {"prefix", [](A& a) { a.prefix = true; }},
      {"prefix sinks", [](A& a) { a.prefix = true, a.sinks = true; }},
      {"prefix look_back", [](A& a) { a.prefix = true, a.look_back = 2; }},
  };
  return all;
}

// The legal ones of kind x mask x position x score.
std::vector<Variant> grammar() {
  const std::vector<nn::Position> positions = {nn::NoPosition{},      nn::SinusoidalPosition{},
                                               nn::LearnedPosition{}, nn::T5Position{8, 6},
                                               nn::AlibiPosition{},   nn::RopePosition{}};
  std::vector<Variant> all;
  for (const auto& [kind, task] : {std::pair{Kind::decoder, model::Task::language},
                                   {Kind::encoder_decoder, model::Task::translate},
                                   {Kind::rnn_seq2seq, model::Task::translate},
                                   {Kind::rnn, model::Task::language},
                                   {Kind::birnn, model::Task::language}})
    for (const Mask& mask : masks())
      for (const nn::Position& position : positions)
        for (const nn::Score score : {nn::Score::scaled_dot, nn::Score::multiplicative,
                                      nn::Score::concat, nn::Score::additive}) {
          ModelConfig c = model::small(kind, task);
          c.sizes = codec_of(task)->sizes();
          if (c.two_stacks()) c.decoder_layers = 3;
          c.attention.position = position;
          c.attention.score = score;
          mask.set(c.attention);
          const std::string name = std::string(to_string(kind)) + " " + mask.name + " " +
                                   std::string(to_string(position)) + " " +
                                   std::string(to_string(score));
          if (model::refusal(c).empty()) all.push_back({name, c});
        }
  return all;
}

// A model of one type, and how far its scores may be apart: sums in another order.
struct Subject {
  const Variant* variant;
  std::unique_ptr<model::Model> model;
  nn::Pass pass;
  double tolerance = 0;

  const ModelConfig& config() const { return variant->config; }
  bool translates() const { return config().task == model::Task::translate; }
};

std::vector<Subject> subjects(const Variant& variant) {
  std::vector<Subject> all;
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f64, 1e-11}, {DType::f32, 3e-5}, {DType::bf16, 0.15}}) {
    const DType parameters = dtype == DType::bf16 ? DType::f32 : dtype;
    all.push_back({&variant, model::build_random(variant.config, parameters), model::pass_in(dtype),
                   tolerance});
  }
  return all;
}

// [2, n]: both sentences, so that a mistake in rows shows.
Tensor two_rows(std::size_t begin, std::size_t end) {
  Ids ids(kSentence.begin() + static_cast<std::ptrdiff_t>(begin),
          kSentence.begin() + static_cast<std::ptrdiff_t>(end));
  ids.insert(ids.end(), kOther.begin() + static_cast<std::ptrdiff_t>(begin),
             kOther.begin() + static_cast<std::ptrdiff_t>(end));
  return Tensor::from<std::int32_t>({2, static_cast<std::int64_t>(end - begin)}, ids);
}

Tensor one_row(std::span<const std::int32_t> ids) {
  return Tensor::from<std::int32_t>({1, static_cast<std::int64_t>(ids.size())}, ids);
}

// The source of a translation model: one sentence for each of the two, the second shorter.
model::Batch source_of(const Subject& s) {
  model::Batch source;
  if (!s.translates()) return source;
  source.tokens = Tensor::from<std::int32_t>({2, 5}, {9, 4, 4, 7, 2, 5, 8, 2, 0, 0});
  source.lengths = model::lengths_of({5, 3});
  return source;
}

// The row of the first sentence of [2, V].
std::vector<double> first_row(const Tensor& scores) {
  return model::doubles(ops::slice(scores, 0, 0, 1));
}

// Step by step: the prompt at once, then the blocks. Scores after each call.
ScoreRows by_cache(const Subject& s, const std::vector<std::size_t>& blocks, bool told) {
  const NoGrad no_grad;
  model::Batch source = source_of(s);
  if (told) source.prefix_lengths = model::prompt_lengths(s.config(), 2, kGiven);
  const auto state = s.model->begin(source, 2, static_cast<std::int64_t>(kSentence.size()), s.pass);
  ScoreRows all(kSentence.size() + 1);
  std::size_t done = 0;
  for (const std::size_t block : blocks) {
    all[done + block] = first_row(s.model->next(*state, two_rows(done, done + block), s.pass));
    done += block;
  }
  return all;
}

// Rows of the first sequence of [B, T, V], after tokens from, from + 1, ….
ScoreRows rows_of(const Tensor& logits, std::size_t from) {
  ScoreRows all(static_cast<std::size_t>(logits.size(1)) + 1);
  for (std::size_t t = from; t < all.size(); ++t) {
    const auto at = static_cast<std::int64_t>(t);
    all[t] = model::doubles(ops::slice(ops::slice(logits, 0, 0, 1), 1, at - 1, at));
  }
  return all;
}

model::Batch whole_batch(const Subject& s, std::size_t length) {
  const Tensor tokens = two_rows(0, length);
  if (!s.translates()) return model::prompted(s.config(), tokens, kGiven);
  model::Batch batch = source_of(s);
  batch.target_tokens = tokens;
  return batch;
}

ScoreRows by_training(const Subject& s) {
  const NoGrad no_grad;
  return rows_of(s.model->logits(whole_batch(s, kSentence.size()), s.pass), kGiven);
}

// All tokens again for each new one.
ScoreRows without_cache(const Subject& s) {
  const NoGrad no_grad;
  ScoreRows all(kSentence.size() + 1);
  for (std::size_t t = kGiven; t <= kSentence.size(); ++t)
    all[t] = rows_of(s.model->logits(whole_batch(s, t), s.pass), t)[t];
  return all;
}

ScoreRows by_request(const Subject& s, std::size_t tokens, std::optional<std::int64_t> prompt) {
  ScoreRequest request;
  const Ids source = {9, 4, 4, 7, 2};
  request.tokens = std::span(kSentence).first(tokens);
  if (s.translates()) request.target = std::exchange(request.tokens, source);
  if (s.config().attention.prefix) request.prompt = prompt;
  request.precision = s.pass.precision;
  const Tensor rows = scores(*s.model, request, "test");
  return rows_of(views::reshape(rows, {1, rows.size(0), rows.size(1)}), kGiven);
}

constexpr double kRounded = 2e-6;  // what scores() gives is f32

// Those that both have; at least `least` of them.
void expect_same(const Subject& s, const ScoreRows& got, const ScoreRows& expected,
                 std::size_t least, const char* path) {
  const bool rounded = std::string_view(path).starts_with("scores()");
  std::size_t compared = 0;
  for (std::size_t t = 0; t < std::min(got.size(), expected.size()); ++t) {
    if (got[t].empty() || expected[t].empty()) continue;
    ++compared;
    ASSERT_EQ(got[t].size(), expected[t].size());
    for (std::size_t v = 0; v < got[t].size(); ++v)
      ASSERT_NEAR(got[t][v], expected[t][v], std::max(s.tolerance, rounded ? kRounded : 0))
          << s.variant->name << " in " << to_string(s.pass.precision) << ", " << path << ": token "
          << v << " behind " << t;
  }
  EXPECT_GE(compared, least) << s.variant->name << " " << path;
}

TEST(SameScores, TheGrammarIsAllThere) {
  std::size_t prefixes = 0, decoders = 0, pairs = 0;
  for (const Variant& v : grammar()) {
    prefixes += v.config.attention.prefix ? 1 : 0;
    decoders += v.config.kind == Kind::decoder ? 1 : 0;
    pairs += v.config.kind == Kind::encoder_decoder ? 1 : 0;
  }
  // 8 masks; rope goes with two of the four scores.
  EXPECT_EQ(decoders, 8u * 22);
  EXPECT_EQ(prefixes, 3u * 22);
  EXPECT_EQ(pairs, 5u * 22);  // without prefix
}

TEST(SameScores, WhateverTheWayTheTokensAreRead) {
  for (const Variant& variant : grammar()) {
    for (const Subject& s : subjects(variant)) {
      const bool prefix = s.config().attention.prefix;
      const ScoreRows cached = by_cache(s, {4, 1, 1, 1, 1, 1}, false);
      expect_same(s, cached, by_training(s), 6, "as in training");
      expect_same(s, cached, without_cache(s), 6, "without a cache");
      expect_same(s, by_cache(s, {4, 3, 2}, true), cached, 3, "in blocks behind the prompt");
      if (!prefix) {
        expect_same(s, by_cache(s, {1, 2, 1, 3, 2}, false), cached, 3, "a prompt in pieces");
      }
      expect_same(s, by_request(s, 9, 4), cached, 6, "scores()");
      expect_same(s, by_request(s, 4, {}), cached, 1, "scores() of the prompt");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// -log of the share that a token has among the scores.
double surprise(const std::vector<double>& scores, std::int32_t token) {
  double most = scores[0], sum = 0;
  for (const double v : scores) most = std::max(most, v);
  for (const double v : scores) sum += std::exp(v - most);
  return most + std::log(sum) - scores[static_cast<std::size_t>(token)];
}

// The loss that is shown and the one that is trained are those of the scores of generation.
TEST(SameScores, LossesAreThoseOfTheScores) {
  const auto codec = codec_of(model::Task::language);
  const InspectInput input{.prompt = "a c f g b c e"};
  const Ids words = codec->encode_source(*input.prompt);
  ASSERT_EQ(words.size(), 7u);
  for (const Variant& variant : grammar()) {
    if (variant.config.attention.prefix || variant.config.kind != Kind::decoder) continue;
    for (const Subject& s : subjects(variant)) {
      const NoGrad no_grad;
      const auto state = s.model->begin({}, 1, 16, s.pass);
      double sum = 0;
      for (std::size_t t = 0; t + 1 < words.size(); ++t) {
        const Tensor next = s.model->next(*state, one_row(std::span(words).subspan(t, 1)), s.pass);
        sum += surprise(first_row(next), words[t + 1]);
      }
      const double expected = sum / 6;
      model::Batch batch = model::prompted(s.config(), one_row(words), 0);
      Ids targets(words.begin() + 1, words.end());
      targets.push_back(model::kIgnore);
      batch.targets = one_row(targets);
      batch.counted = 6;
      EXPECT_NEAR(s.model->loss(batch, s.pass, 0).task.item(), expected, s.tolerance)
          << variant.name;
      const Inspection seen = inspect(*s.model, *codec, input, {.precision = s.pass.precision});
      ASSERT_TRUE(seen.loss) << variant.name;
      EXPECT_NEAR(*seen.loss, expected, s.tolerance) << variant.name;
    }
  }
}

// A prompt that is seen both ways has nothing to predict; its maps are those of the prompt that
// generation reads.
TEST(SameScores, InspectionOfAPromptSeesItBothWays) {
  for (const Variant& variant : grammar()) {
    if (!variant.config.attention.prefix) continue;
    const auto model = model::build_random(variant.config, DType::f32);
    const Inspection seen =
        inspect(*model, *codec_of(model::Task::language), {.prompt = "a b c d e"});
    EXPECT_FALSE(seen.loss);
    ASSERT_EQ(seen.maps.layers().size(), 2u);
    const bool window = variant.config.attention.look_back.has_value();
    for (std::int32_t i = 0; i < 5; ++i)
      EXPECT_EQ(seen.maps.layers()[1].visible[static_cast<std::size_t>(i)],
                (model::KeyRange{window ? std::max(0, i - 2) : 0, 5}))
          << variant.name << " " << i;
  }
}

// Two documents in one window: each is scored as if it were alone. Behind the first one positions
// do not begin at 0, so that only distances are the same.
TEST(SameScores, DocumentsOfAWindowAreReadAsIfAlone) {
  for (const Variant& variant : grammar()) {
    if (variant.config.kind != Kind::decoder) continue;
    const nn::Position& position = variant.config.attention.position;
    const bool absolute = std::holds_alternative<nn::LearnedPosition>(position) ||
                          std::holds_alternative<nn::SinusoidalPosition>(position);
    const Subject s{&variant, model::build_f64(variant.config), model::pass_f64(), 1e-10};
    const NoGrad no_grad;
    const std::size_t first = 5;
    model::Batch packed = model::prompted(s.config(), one_row(kSentence), 3);
    packed.documents = Tensor::from<std::int64_t>({1, 9}, {0, 0, 0, 0, 0, 1, 1, 1, 1});
    const Tensor rows = s.model->logits(packed, s.pass);
    const auto alone = [&](std::span<const std::int32_t> ids, std::int64_t prompt) {
      return s.model->logits(model::prompted(s.config(), one_row(ids), prompt), s.pass);
    };
    const std::span<const std::int32_t> all(kSentence);
    EXPECT_LE(model::distance(ops::slice(rows, 1, 0, first), alone(all.first(first), 3)), 1e-10)
        << variant.name;
    if (absolute) continue;
    EXPECT_LE(model::distance(ops::slice(rows, 1, first, 9), alone(all.subspan(first), 0)), 1e-10)
        << variant.name;
  }
}

// The text is the same, also where a window begins anew in the middle of it.
TEST(SameScores, WithoutACacheTheTextIsTheSame) {
  for (const Variant& variant : grammar()) {
    if (variant.config.task != model::Task::language) continue;
    const auto model = model::build_f64(variant.config);
    // So sure of its tokens that a small change of what is seen changes the text.
    for (nn::Parameter& p : model->parameters().all())
      if (p.name == "head.weight") ops::copy_into(p.tensor, ops::scale(p.tensor.detach(), 40));
    for (const bool slide : {false, true}) {
      if (slide && variant.config.recurrent()) continue;
      GenerationOptions o;
      o.tokens = slide ? 60 : 8;
      o.slide = slide;
      o.samples = 2;
      o.sampling.seed = 6;
      const auto tokens_of = [&](bool cache) {
        o.cache = cache;
        const Generation g =
            generate(*model, std::span(kSentence).first(kGiven), o, {.precision = DType::f64});
        return std::pair(g.samples[0].tokens, g.samples[1].tokens);
      };
      const auto cached = tokens_of(true);
      EXPECT_EQ(cached, tokens_of(false)) << variant.name << (slide ? ", sliding" : "");
      EXPECT_EQ(cached.first.size(), slide ? 60u : 8u);
    }
  }
}

TEST(SameScores, APromptIsRefusedWhereNothingIsSeenBothWays) {
  const Variant plain{"plain", model::small(Kind::decoder, model::Task::language)};
  const auto model = model::build_f64(plain.config);
  ScoreRequest request;
  request.tokens = kSentence;
  request.prompt = 2;
  try {
    scores(*model, request, "test");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("attention.prefix"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace heddle::generate
