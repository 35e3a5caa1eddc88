#include <gtest/gtest.h>

#include <algorithm>

#include "generate/decode/beam/beam.h"
#include "generate/decode/context.h"
#include "generate/decode/generate.h"
#include "generate/decode/sampling/sampler.h"
#include "generate/decode/test_model.h"
#include "heddle/error.h"
#include "text/train.h"

namespace heddle::generate {
namespace {

using testing::TreeModel;
using Tokens = std::vector<std::int32_t>;

const Tokens kPrompt = {1, 2, 0};

GenerationOptions sampling(std::int64_t tokens, std::int64_t samples = 1) {
  GenerationOptions o;
  o.sampling.seed = 11;
  o.tokens = tokens;
  o.samples = samples;
  return o;
}

std::vector<Tokens> tokens_of(const Generation& g) {
  std::vector<Tokens> all;
  for (const Sample& s : g.samples) all.push_back(s.tokens);
  return all;
}

TEST(Generate, GreedyFollowsTheBestTokens) {
  const TreeModel model({.vocabulary = 7});
  GenerationOptions o = sampling(20);
  o.sampling.temperature = 0;
  const Generation g = generate(model, kPrompt, o);
  Tokens history = kPrompt;
  for (const std::int32_t token : g.samples[0].tokens) {
    EXPECT_EQ(token, best_token(model.scores(history)));
    history.push_back(token);
  }
  EXPECT_EQ(history.size(), 23u);
  EXPECT_EQ(g.prompt_tokens, 3);
  EXPECT_EQ(g.samples[0].finish, Finish::length);
}

TEST(Generate, ReadsThePromptOnceAndEachTokenOnce) {
  const TreeModel model({});
  generate(model, kPrompt, sampling(10, 4));
  EXPECT_EQ(model.states, 1);
  EXPECT_EQ(model.tokens_read, 3 + 9 * 4);  // the last token is not read
}

TEST(Generate, TheSameSeedGivesTheSameText) {
  const TreeModel model({.vocabulary = 9});
  const auto first = tokens_of(generate(model, kPrompt, sampling(30)));
  EXPECT_EQ(first, tokens_of(generate(model, kPrompt, sampling(30))));
  GenerationOptions other = sampling(30);
  other.sampling.seed = 12;
  EXPECT_NE(first, tokens_of(generate(model, kPrompt, other)));
}

TEST(Generate, ASampleDoesNotDependOnTheOthers) {
  const TreeModel model({.vocabulary = 5});
  GenerationOptions o = sampling(25, 6);
  const Decoding decoding = {.ends = {0}};  // so that they end at different times
  const auto six = generate(model, kPrompt, o, decoding).samples;
  o.samples = 2;
  const auto two = generate(model, kPrompt, o, decoding).samples;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(six[i].tokens, two[i].tokens);
    EXPECT_EQ(six[i].finish, two[i].finish);
  }
  EXPECT_NE(six[0].tokens, six[1].tokens);
  const auto ended = [](const Sample& s) { return s.finish == Finish::end; };
  EXPECT_TRUE(std::any_of(six.begin(), six.end(), ended));
  for (const Sample& s : six)
    EXPECT_EQ(std::count(s.tokens.begin(), s.tokens.end(), 0), 0) << "the end is no part of it";
}

TEST(Generate, EachOfSeveralTokensEndsAText) {
  const TreeModel model({.vocabulary = 5});
  const auto plain = generate(model, kPrompt, sampling(40)).samples[0].tokens;
  const auto first = [&](std::int32_t a, std::int32_t b) {
    return std::ranges::find_if(plain, [&](std::int32_t t) { return t == a || t == b; });
  };
  for (const auto& [a, b] : {std::pair{0, 3}, {3, 0}, {1, 4}}) {
    const Sample s = generate(model, kPrompt, sampling(40), {.ends = {a, b}}).samples[0];
    EXPECT_EQ(s.finish, Finish::end);
    EXPECT_EQ(s.tokens, Tokens(plain.begin(), first(a, b)));
  }
}

// A table of 300 rows for a tokenizer of 256 bytes: the greedy token is often one of the others.
TEST(Generate, RowsThatAreNoTokensAreNeverWritten) {
  const TreeModel model({.vocabulary = 300});
  const std::string_view text = "a";
  const auto bytes =
      text::train_tokenizer(text::TokenizerSpec::parse("byte", "test"), {&text, 1}, {});
  const auto beyond = [](const Tokens& tokens) {
    return std::ranges::any_of(tokens, [](std::int32_t t) { return t >= 256; });
  };
  EXPECT_TRUE(beyond(generate(model, kPrompt, sampling(60)).samples[0].tokens));
  const Decoding decoding = {.tokenizer = bytes.get()};
  EXPECT_FALSE(beyond(generate(model, kPrompt, sampling(60), decoding).samples[0].tokens));
  BeamOptions beam;
  beam.beam = 3;
  EXPECT_TRUE(beyond(beam_continue(model, kPrompt, 60, beam, {})[0].tokens));
  EXPECT_FALSE(beyond(beam_continue(model, kPrompt, 60, beam, decoding)[0].tokens));
}

TEST(Generate, WithoutACacheEverythingIsTheSame) {
  for (const bool slide : {false, true}) {
    const TreeModel model({.vocabulary = 6, .context = 8});
    GenerationOptions o = sampling(40, 3);
    const Decoding decoding = {.ends = {5}};
    o.slide = slide;
    const auto cached = tokens_of(generate(model, kPrompt, o, decoding));
    o.cache = false;
    EXPECT_EQ(cached, tokens_of(generate(model, kPrompt, o, decoding)));
    EXPECT_EQ(model.states > 1, slide);
  }
}

// The tokens that a sliding window of 8 sees before the n-th token: all until 8 tokens were read,
// then the last 4, then more until it is full again.
TEST(Generate, SlidingGoesOnFromTheLastHalf) {
  const TreeModel model({.vocabulary = 6, .context = 8, .learned_positions = true});
  GenerationOptions o = sampling(20);
  o.sampling.temperature = 0;
  o.slide = true;
  Tokens sequence = kPrompt, seen = kPrompt;
  const Generation g = generate(model, kPrompt, o);
  for (const std::int32_t token : g.samples[0].tokens) {
    EXPECT_EQ(token, best_token(model.scores(seen)));
    sequence.push_back(token);
    if (seen.size() == 8)
      seen.assign(sequence.end() - 4, sequence.end());
    else
      seen.push_back(token);
  }
}

TEST(Generate, SlidingReadsTheEndOfAPromptThatIsTooLong) {
  const TreeModel model({.vocabulary = 6, .context = 8, .learned_positions = true});
  GenerationOptions o = sampling(1);
  o.sampling.temperature = 0;
  o.slide = true;
  const Tokens prompt = {1, 2, 3, 4, 5, 1, 2, 3, 4};
  EXPECT_EQ(generate(model, prompt, o).samples[0].tokens[0],
            best_token(model.scores({1, 2, 3, 4})));
}

TEST(Generate, LearnedPositionsEndWhereTheyEnd) {
  const TreeModel model({.context = 8, .learned_positions = true});
  GenerationOptions o = sampling(6);
  EXPECT_EQ(generate(model, kPrompt, o).samples[0].tokens.size(), 6u);  // reads 3 + 5
  o.tokens = 7;
  EXPECT_THROW(generate(model, kPrompt, o), Error);
  o.tokens = {};  // what fits
  EXPECT_EQ(generate(model, kPrompt, o).samples[0].tokens.size(), 6u);
  EXPECT_THROW(generate(model, Tokens(9, 1), o), Error);
  const TreeModel free({.context = 8});
  o.tokens = 30;
  EXPECT_EQ(generate(free, kPrompt, o).samples[0].tokens.size(), 30u);
}

TEST(Generate, HowManyTokensFit) {
  model::ModelConfig c;
  c.sizes.context = 8;
  c.attention.position = nn::LearnedPosition{8};
  EXPECT_EQ(tokens_that_fit(c, 3, 100), 6);  // reads 3 + 5, and writes one more
  EXPECT_EQ(tokens_that_fit(c, 3, 5), 5);
  EXPECT_EQ(tokens_that_fit(c, 8, 100), 1);
  EXPECT_EQ(tokens_that_fit(c, 9, 100), 1);  // which generate() refuses with its reason
  c.attention.position = nn::RopePosition{};
  EXPECT_EQ(tokens_that_fit(c, 3, 100), 100);
}

TEST(Generate, WhichModelsHaveALimit) {
  model::ModelConfig c;
  c.sizes.context = 16;
  for (const nn::Position& p : {nn::Position(nn::NoPosition{}), nn::Position(nn::RopePosition{}),
                                nn::Position(nn::AlibiPosition{}), nn::Position(nn::T5Position{}),
                                nn::Position(nn::SinusoidalPosition{})}) {
    c.attention.position = p;
    EXPECT_FALSE(position_limit(c));
  }
  c.attention.position = nn::LearnedPosition{16};
  EXPECT_EQ(position_limit(c), 16);
  c.kind = model::Kind::rnn;
  EXPECT_FALSE(position_limit(c));
  EXPECT_THROW(plan_window(c, 1, 1, true), Error);  // a state has no window
}

TEST(Generate, RefusesByName) {
  const TreeModel model({});
  const auto refused = [&](const Tokens& prompt, const auto& change, const std::string& problem) {
    GenerationOptions o = sampling(4);
    change(o);
    try {
      generate(model, prompt, o);
      ADD_FAILURE() << problem;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), problem);
    }
  };
  using O = GenerationOptions;
  refused({}, [](O&) {}, "prompt");
  refused({4}, [](O&) {}, "token of the prompt");
  refused({-1}, [](O&) {}, "token of the prompt");
  refused({1}, [](O& o) { o.tokens = 0; }, "option tokens");
  refused({1}, [](O& o) { o.samples = 0; }, "option samples");
  refused({1}, [](O& o) { o.samples = 1 << 30; }, "option samples");
  refused({1}, [](O& o) { o.stop = {"x"}; }, "option stop");
  refused({1}, [](O& o) { o.sampling.top_p = 2; }, "option top_p");
  const TreeModel translator({.translate = true});
  EXPECT_THROW(generate(translator, kPrompt, sampling(1)), Error);
}

}  // namespace
}  // namespace heddle::generate
