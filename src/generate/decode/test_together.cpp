// Many texts at once, and tokens that are tried: neither changes a token.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "generate/decode/generate.h"
#include "generate/decode/lookup.h"
#include "generate/decode/reader.h"
#include "generate/decode/test_model.h"
#include "heddle/error.h"
#include "model/decoding.h"
#include "model/test_support.h"

namespace heddle::generate {
namespace many_texts {
namespace {

using testing::TreeModel;
using Tokens = std::vector<std::int32_t>;

// Of all lengths, longer than a block among them.
std::vector<Tokens> prompts(std::int64_t vocabulary) {
  std::vector<Tokens> all;
  for (const std::int64_t length : {3, 1, 40, 300, 2, 700, 17, 5, 260, 1, 9}) {
    const auto tokens =
        model::random_ids({length}, vocabulary, static_cast<std::uint32_t>(all.size()));
    all.push_back(tokens.to_vector<std::int32_t>());
  }
  return all;
}

std::vector<std::span<const std::int32_t>> spans_of(const std::vector<Tokens>& all) {
  return {all.begin(), all.end()};
}

GenerationOptions drawn(std::int64_t tokens) {
  GenerationOptions o;
  o.tokens = tokens;
  o.sampling.seed = 5;
  return o;
}

void expect_same(const std::vector<Generation>& texts, const model::Model& model,
                 const std::vector<Tokens>& prompts, const GenerationOptions& options,
                 const Decoding& decoding) {
  ASSERT_EQ(texts.size(), prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(i);
    const Generation alone = generate(model, prompts[i], options, decoding);
    EXPECT_EQ(texts[i].samples[0].tokens, alone.samples[0].tokens);
    EXPECT_EQ(texts[i].samples[0].finish, alone.samples[0].finish);
    EXPECT_EQ(texts[i].prompt_tokens, std::ssize(prompts[i]));
  }
}

TEST(Together, EveryTextIsTheOneThatItIsAlone) {
  const TreeModel model({.vocabulary = 6});
  const Decoding decoding = {.ends = {5}};  // so that they leave at different times
  const std::vector<Tokens> all = prompts(5);
  std::set<std::size_t> lengths;
  for (const std::int64_t batch : {1, 3, 16}) {
    SCOPED_TRACE(batch);
    std::vector<std::size_t> done;
    const auto texts = generate_each(model, spans_of(all), drawn(30), batch, decoding,
                                     [&](std::size_t i, const Generation& g) {
                                       done.push_back(i);
                                       lengths.insert(g.samples[0].tokens.size());
                                     });
    expect_same(texts, model, all, drawn(30), decoding);
    std::ranges::sort(done);
    for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i);
    EXPECT_EQ(done.size(), all.size());
  }
  EXPECT_GT(lengths.size(), 3u);
}

// A real model: the weights of all sequences' products are read together.
TEST(Together, ARealModelWritesTheSameTexts) {
  model::ModelConfig c = model::small(model::Kind::decoder, model::Task::language);
  c.width = 32;
  c.sizes.vocabulary = 6;
  c.attention.position = nn::RopePosition{};
  c.attention.look_back = 100;
  const auto model = model::build_random(c, DType::f32);
  const std::vector<Tokens> all = prompts(5);
  for (const std::int64_t lookup : {0, 4}) {
    GenerationOptions options = drawn(20);
    options.lookup = lookup;
    for (const DType precision : {DType::f32, DType::bf16}) {
      const Decoding decoding = {.ends = {5}, .precision = precision};
      const auto texts = generate_each(*model, spans_of(all), options, 4, decoding);
      expect_same(texts, *model, all, drawn(20), decoding);
    }
  }
}

TEST(Together, LookupChangesTheNumberOfCallsAndNoToken) {
  const TreeModel model({.vocabulary = 3, .spread = 8});
  GenerationOptions o = drawn(200);
  const Generation plain = generate(model, prompts(3)[2], o);
  const std::int64_t calls = model.calls;
  o.lookup = 5;
  const Generation tried = generate(model, prompts(3)[2], o);
  EXPECT_EQ(tried.samples[0].tokens, plain.samples[0].tokens);
  EXPECT_EQ(plain.tried_tokens, 0);
  EXPECT_GT(tried.kept_tokens, 10);
  EXPECT_LT(tried.kept_tokens, tried.tried_tokens);
  EXPECT_EQ(tried.samples[0].tokens.size(), 200u);
  EXPECT_GT(calls, 0);
}

// Notes how many tokens the largest call had.
class Widest final : public TreeModel {
 public:
  using TreeModel::TreeModel;
  Tensor next_each(std::span<const model::NextTokens> sequences,
                   const nn::Pass& pass) const override {
    std::size_t tokens = 0;
    for (const model::NextTokens& s : sequences) tokens += s.tokens.size();
    most = std::max(most, tokens);
    return TreeModel::next_each(sequences, pass);
  }
  mutable std::size_t most = 0;
};

// What is tried takes memory as prompts do: many texts share a block for it.
TEST(Together, GuessesOfManyTextsShareABlock) {
  const Widest model({.vocabulary = 2, .spread = 8});
  std::vector<Tokens> all;
  for (std::int32_t i = 0; i < 40; ++i) all.push_back({i % 2, 1, 0, 1, 0, 1, 0, 1});
  GenerationOptions o = drawn(50);
  const auto plain = generate_each(model, spans_of(all), o, 40);
  o.lookup = 64;
  const auto tried = generate_each(model, spans_of(all), o, 40);
  EXPECT_LE(model.most, static_cast<std::size_t>(model::kPromptBlock));
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(tried[i].samples[0].tokens, plain[i].samples[0].tokens);
    kept += tried[i].kept_tokens;
  }
  EXPECT_GT(kept, 100);
}

// One of many prompts is named by its number, an option is not blamed on any of them.
TEST(Together, ErrorsAboutAPromptHaveItsNumber) {
  const TreeModel model({.vocabulary = 3});
  const std::vector<Tokens> all = {{1}, {0, 2}, {1, 7}};
  for (const bool cache : {true, false}) {
    GenerationOptions o = drawn(4);
    o.cache = cache;
    try {
      generate_each(model, spans_of(all), o, 2);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), "prompt 3");
      EXPECT_EQ(e.problem(), "token of the prompt");
    }
    o.samples = 0;
    try {
      generate_each(model, spans_of(all), o, 2);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), "generate");
    }
  }
}

TEST(Together, LookupEndsWhereTheTextEnds) {
  const TreeModel model({.vocabulary = 3, .spread = 8});
  GenerationOptions o = drawn(60);
  o.lookup = 8;
  for (const std::int32_t end : {0, 1, 2}) {
    const Decoding decoding = {.ends = {end}};
    GenerationOptions plain = o;
    plain.lookup = 0;
    const Sample with = generate(model, prompts(3)[6], o, decoding).samples[0];
    const Sample without = generate(model, prompts(3)[6], plain, decoding).samples[0];
    EXPECT_EQ(with.tokens, without.tokens);
    EXPECT_EQ(with.finish, without.finish);
  }
}

TEST(Together, WhatIsLookedUp) {
  const auto found = [](const Tokens& tokens, std::size_t most) {
    const auto span = looked_up(tokens, most);
    return Tokens(span.begin(), span.end());
  };
  EXPECT_EQ(found({1, 2, 3, 4, 5, 1, 2, 3}, 9), (Tokens{4, 5, 1, 2, 3}));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 1, 2, 3}, 2), (Tokens{4, 5}));
  EXPECT_EQ(found({1, 2, 3, 4, 1, 2, 3, 6, 1, 2, 3}, 1), (Tokens{6})) << "the latest place";
  EXPECT_EQ(found({9, 2, 3, 4, 5, 1, 2, 3}, 1), (Tokens{4})) << "two tokens, where three are not";
  EXPECT_EQ(found({7, 7, 7, 7}, 3), (Tokens{7}));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 9, 3}, 3), Tokens{}) << "one token is too little";
  EXPECT_EQ(found({1, 2}, 3), Tokens{});
  EXPECT_EQ(found({1}, 3), Tokens{});
}

TEST(Together, CancelledTextsEndWhereTheyAre) {
  const TreeModel model({});
  GenerationOptions o = drawn(50);
  int asked = 0;
  o.cancelled = [&] { return ++asked == 4; };
  const std::vector<Tokens> all = {{1}, {2, 3}, {1, 1, 1}};
  const auto texts = generate_each(model, spans_of(all), o, 2);
  ASSERT_EQ(texts.size(), 3u);
  for (const Generation& g : texts) EXPECT_EQ(g.samples[0].finish, Finish::cancelled);
  EXPECT_EQ(texts[0].samples[0].tokens.size(), 3u);
  EXPECT_TRUE(texts[2].samples[0].tokens.empty());
}

TEST(Together, RefusesByName) {
  const TreeModel model({});
  const std::vector<Tokens> all = {{1}};
  const auto refused = [&](const auto& change, std::int64_t batch, const std::string& problem) {
    GenerationOptions o = drawn(4);
    change(o);
    try {
      generate_each(model, spans_of(all), o, batch);
      ADD_FAILURE() << problem;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), problem);
    }
  };
  using O = GenerationOptions;
  refused([](O&) {}, 0, "option batch");
  refused([](O& o) { o.lookup = -1; }, 1, "option lookup");
  refused([](O& o) { o.lookup = 1000; }, 1, "option lookup");
  refused([](O& o) { o.lookup = 2, o.samples = 2; }, 1, "option lookup");
  refused([](O& o) { o.lookup = 2, o.slide = true; }, 1, "option lookup");
  refused([](O& o) { o.lookup = 2, o.cache = false; }, 1, "option lookup");
}

// A prompt that is seen both ways is read anew, whatever was read of it before, and in one piece.
TEST(Together, PromptsThatAreSeenBothWaysAreReadAnew) {
  model::ModelConfig c = model::small(model::Kind::decoder, model::Task::language);
  c.attention.prefix = true;
  const auto model = model::build_random(c, DType::f32);
  const Tokens first = {1, 2, 3};
  ReadBefore before;
  const Decoding remembering = {.before = &before};
  Tokens longer = first;
  const Generation before_it = generate(*model, first, drawn(4), remembering);
  for (const std::int32_t t : before_it.samples[0].tokens) longer.push_back(t);
  longer.push_back(2);
  longer.push_back(1);
  const Generation again = generate(*model, longer, drawn(4), remembering);
  EXPECT_EQ(again.reused_tokens, 0);
  EXPECT_EQ(again.samples[0].tokens, generate(*model, longer, drawn(4)).samples[0].tokens);
  GenerationOptions tried = drawn(4);
  tried.lookup = 2;
  try {
    generate(*model, first, tried);
    ADD_FAILURE() << "lookup";
  } catch (const Error& e) {
    EXPECT_EQ(e.got(), "attention.prefix");
  }
}

}  // namespace
}  // namespace many_texts
}  // namespace heddle::generate
