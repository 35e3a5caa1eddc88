#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "generate/decode/beam/beam.h"
#include "generate/decode/generate.h"
#include "generate/decode/sampling/best_tokens.h"
#include "generate/decode/test_model.h"
#include "heddle/error.h"

namespace heddle::generate {
namespace {

using testing::TreeModel;
using Tokens = std::vector<std::int32_t>;

const Tokens kBeamPrompt = {1, 2};
constexpr std::int32_t kEnd = 0;
const Decoding kEnds = {.ends = {kEnd}};

double log_probability(const TreeModel& model, const Tokens& history, std::int32_t token) {
  const auto scores = model.scores(history);
  double sum = 0;
  for (const float s : scores) sum += std::exp(static_cast<double>(s));
  return static_cast<double>(scores[static_cast<std::size_t>(token)]) - std::log(sum);
}

double score_of(const BeamOptions& o, double log_probability, std::size_t length) {
  const auto n = static_cast<double>(length);
  return log_probability / std::pow(o.norm == LengthNorm::gnmt ? (5 + n) / 6 : n, o.length_penalty);
}

// By insertion: std::stable_sort uses what C++20 calls deprecated, and clang says so.
template <class Better>
void sort_stably(std::vector<Hypothesis>& all, const Better& better) {
  for (auto at = all.begin(); at != all.end(); ++at)
    std::rotate(std::upper_bound(all.begin(), at, *at, better), at, at + 1);
}

// Every text of at most `longest` tokens that ends with the end token.
void enumerate(const TreeModel& model, const BeamOptions& o, std::size_t longest, Tokens& text,
               double sum, std::vector<Hypothesis>& all) {
  Tokens history = kBeamPrompt;
  history.insert(history.end(), text.begin(), text.end());
  for (std::int32_t t = 0; t < model.config().sizes.vocabulary; ++t) {
    const double total = sum + log_probability(model, history, t);
    if (t == kEnd) {
      all.push_back({text, "", total, score_of(o, total, text.size() + 1), true});
    } else if (text.size() + 1 < longest) {
      text.push_back(t);
      enumerate(model, o, longest, text, total, all);
      text.pop_back();
    }
  }
}

// Takes the continuations, from the best, into a beam of one of the two kinds.
void take(const BeamOptions& o, const std::vector<Hypothesis>& all, bool last,
          std::vector<Hypothesis>& live, std::vector<Hypothesis>& done) {
  const bool full = o.kind == BeamKind::full && o.beam > 1;
  const auto beam = static_cast<std::size_t>(o.beam);
  const std::size_t room = full ? beam : beam - done.size();
  live.clear();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const bool good = rank < room;
    if (all[rank].finished && good) done.push_back(all[rank]);
    const bool stays = good || (full && !last && live.size() < beam);
    if (!all[rank].finished && stays) live.push_back(all[rank]);
  }
}

// The search as beam.h defines it, plainly: whole sequences, all candidates sorted, no early end.
std::vector<Hypothesis> plain_search(const TreeModel& model, const BeamOptions& o,
                                     std::size_t longest) {
  std::vector<Hypothesis> live(1), done;
  for (std::size_t length = 1; length <= longest && !live.empty(); ++length) {
    std::vector<Hypothesis> all;
    for (const Hypothesis& h : live) {
      Tokens history = kBeamPrompt;
      history.insert(history.end(), h.tokens.begin(), h.tokens.end());
      for (std::int32_t t = 0; t < model.config().sizes.vocabulary; ++t) {
        Hypothesis next = h;
        next.finished = t == kEnd;
        if (!next.finished) next.tokens.push_back(t);
        next.log_probability += log_probability(model, history, t);
        next.score = score_of(o, next.log_probability, length);
        all.push_back(next);
      }
    }
    sort_stably(all,
                [](const auto& a, const auto& b) { return a.log_probability > b.log_probability; });
    take(o, all, length == longest, live, done);
  }
  const auto by_score = [](const auto& a, const auto& b) { return a.score > b.score; };
  sort_stably(done, by_score);
  sort_stably(live, by_score);
  done.insert(done.end(), live.begin(), live.end());
  if (o.kind == BeamKind::full && o.beam > 1) sort_stably(done, by_score);
  done.resize(std::min(done.size(), static_cast<std::size_t>(o.best)));
  return done;
}

void expect_same(const std::vector<Hypothesis>& got, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].tokens, expected[i].tokens) << "hypothesis " << i;
    EXPECT_EQ(got[i].finished, expected[i].finished);
    EXPECT_NEAR(got[i].log_probability, expected[i].log_probability, 1e-5);
    EXPECT_NEAR(got[i].score, expected[i].score, 1e-5);
  }
}

std::vector<BeamOptions> norms() {
  std::vector<BeamOptions> all;
  for (const LengthNorm norm : {LengthNorm::mean, LengthNorm::gnmt})
    for (const double a : {0.0, 0.6, 1.0, 2.0}) {
      BeamOptions o;
      o.norm = norm;
      o.length_penalty = a;
      all.push_back(o);
    }
  return all;
}

TEST(Beam, WideEnoughItFindsTheBestOfAllTexts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const TreeModel model({.vocabulary = 3, .seed = seed});
    for (BeamOptions o : norms()) {
      constexpr std::size_t kLongest = 5;
      std::vector<Hypothesis> all;
      Tokens text;
      enumerate(model, o, kLongest, text, 0, all);
      sort_stably(all, [](const auto& a, const auto& b) { return a.score > b.score; });
      o.beam = 300;  // more than there are texts
      o.best = 4;
      all.resize(4);
      expect_same(beam_continue(model, kBeamPrompt, kLongest, o, kEnds), all);
    }
  }
}

TEST(Beam, NarrowItIsThePlainSearchAndItsEarlyEndChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    const TreeModel model({.vocabulary = 6, .seed = seed, .spread = 4});
    for (BeamOptions o : norms())
      for (const std::int64_t beam : {1, 2, 3, 5})
        for (const std::int64_t best : {std::int64_t{1}, beam}) {
          o.beam = beam;
          o.best = best;
          for (const BeamKind kind : {BeamKind::narrowing, BeamKind::full}) {
            SCOPED_TRACE(to_string(kind));
            o.kind = kind;
            expect_same(beam_continue(model, kBeamPrompt, 8, o, kEnds), plain_search(model, o, 8));
          }
        }
  }
}

// Settings for texts in the files of a model.
TEST(Beam, TokensThatMustAndMustNotBeWritten) {
  const TreeModel model({.vocabulary = 6, .translate = true});
  const auto search = [&](BeamKind kind, const auto& change) {
    BeamStart start;
    start.longest = {6};
    start.ends = {kEnd};
    change(start);
    model::Batch batch;
    batch.tokens = Tensor::from<std::int32_t>({1, 2}, {3, 4});
    start.state = model.begin(batch, 1, 7, {});
    start.logits = model.next(*start.state, Tensor::from<std::int32_t>({1, 1}, {1}), {});
    BeamOptions o;
    o.beam = o.best = 4;
    o.kind = kind;
    return beam_search(model, std::move(start), o, {})[0];
  };
  for (const BeamKind kind : {BeamKind::narrowing, BeamKind::full}) {
    for (const Hypothesis& h : search(kind, [](BeamStart& s) { s.never = {2, 5}; })) {
      double sum = 0;  // of the probabilities that all tokens have
      Tokens history = {3, 4, 1};
      for (const std::int32_t t : h.tokens) {
        EXPECT_TRUE(t != 2 && t != 5);
        sum += log_probability(model, history, t);
        history.push_back(t);
      }
      if (h.finished) sum += log_probability(model, history, kEnd);
      EXPECT_NEAR(h.log_probability, sum, 1e-5);
    }
    for (const Hypothesis& h : search(kind, [](BeamStart& s) { s.first = 4; })) {
      ASSERT_FALSE(h.tokens.empty());
      EXPECT_EQ(h.tokens[0], 4);
      if (h.tokens.size() == 1 && h.finished) {
        EXPECT_NEAR(h.log_probability, log_probability(model, {3, 4, 1, 4}, kEnd), 1e-5);
      }
    }
    for (const Hypothesis& h : search(kind, [](BeamStart& s) {
           s.never = {kEnd};
           s.ends_at_limit = true;
         })) {
      EXPECT_TRUE(h.finished);
      EXPECT_EQ(h.tokens.size(), 5u);  // and the end, at no cost
      EXPECT_NEAR(h.score, h.log_probability / 6, 1e-9);
    }
    for (const std::int32_t bad : {-1, 6})
      EXPECT_THROW(search(kind, [&](BeamStart& s) { s.never = {bad}; }), Error);
  }
}

// Without spread all texts of a length are equally probable: the rules for ties decide.
TEST(Beam, OfEqualSumsTheBetterBeginningAndTheLowerTokenComeFirst) {
  const TreeModel model({.vocabulary = 6, .spread = 0});
  for (const std::int64_t beam : {2, 3, 5, 20}) {
    BeamOptions o;
    o.beam = o.best = beam;
    o.length_penalty = 0;
    expect_same(beam_continue(model, kBeamPrompt, 8, o, kEnds), plain_search(model, o, 8));
  }
}

TEST(Beam, EndsEarlyWhenNothingBetterIsPossible) {
  BeamOptions o;
  o.length_penalty = 0;  // the sum: nothing is gained by length
  const TreeModel model({.vocabulary = 6, .seed = 3, .spread = 8});
  beam_continue(model, kBeamPrompt, 60, o, kEnds);
  EXPECT_LT(model.calls, 30);
}

TEST(Beam, ABeamOfOneIsGreedy) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const TreeModel model({.vocabulary = 5, .seed = seed});
    BeamOptions o;
    o.beam = 1;
    const auto found = beam_continue(model, kBeamPrompt, 12, o, kEnds);
    const GenerationOptions greedy = {.tokens = 12, .sampling = {.temperature = 0}};
    const Sample sample = generate(model, kBeamPrompt, greedy, kEnds).samples[0];
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].tokens, sample.tokens);
    EXPECT_EQ(found[0].finished, sample.finish == Finish::end);
  }
}

TEST(Beam, WithoutAnEndTokenTextsHaveTheLongestLength) {
  const TreeModel model({.vocabulary = 4});
  BeamOptions o;
  o.best = 5;
  const auto found = beam_continue(model, kBeamPrompt, 7, o);
  ASSERT_EQ(found.size(), 5u);
  for (const Hypothesis& h : found) {
    EXPECT_EQ(h.tokens.size(), 7u);
    EXPECT_FALSE(h.finished);
  }
  EXPECT_GE(found[0].score, found[4].score);
}

TEST(Beam, ABatchGivesWhatItsSentencesGiveAlone) {
  const TreeModel model({.vocabulary = 5, .translate = true});
  BeamOptions o;
  o.beam = o.best = 3;
  const std::vector<Tokens> sources = {{1}, {2, 3}, {4, 4, 1}, {3, 3, 3}, {1, 2}};
  const std::vector<std::int64_t> longest = {4, 9, 6, 1, 9};
  const auto search = [&](const std::vector<std::size_t>& which) {
    Tokens tokens;
    std::vector<std::int64_t> lengths;
    BeamStart start;
    start.ends = {kEnd};
    for (const std::size_t i : which) {
      Tokens padded = sources[i];
      lengths.push_back(static_cast<std::int64_t>(padded.size()));
      padded.resize(3, 2);
      tokens.insert(tokens.end(), padded.begin(), padded.end());
      start.longest.push_back(longest[i]);
    }
    const auto count = static_cast<std::int64_t>(which.size());
    model::Batch batch;
    batch.tokens = Tensor::from<std::int32_t>({count, 3}, tokens);
    batch.lengths = Tensor::from<std::int64_t>({count}, lengths);
    start.state = model.begin(batch, count, 10, {});
    const Tokens begin(which.size(), 1);
    start.logits = model.next(*start.state, Tensor::from<std::int32_t>({count, 1}, begin), {});
    return beam_search(model, std::move(start), o, {});
  };
  const auto together = search({0, 1, 2, 3, 4});
  ASSERT_EQ(together.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    expect_same(together[i], search({i})[0]);
    for (const Hypothesis& h : together[i])
      EXPECT_LE(h.tokens.size() + (h.finished ? 1u : 0u), static_cast<std::size_t>(longest[i]));
  }
}

TEST(Beam, RefusesAStartThatIsNoMatrixOfScores) {
  const TreeModel model({});
  for (const Shape& shape : {Shape{2, 1, 5}, Shape{2}, Shape{3, 5}}) {
    BeamStart start;
    start.longest = {4, 4};
    start.ends = {kEnd};
    start.state = model.begin({}, 2, 10, {});
    start.logits = Tensor::zeros(shape, DType::f32);
    try {
      beam_search(model, std::move(start), {}, {});
      ADD_FAILURE() << shape.rank();
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), "start") << e.what();
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(Beam, BestTokensAreSortedAndTiesGoToTheLowerId) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> scores(200, -1.0f);
  scores[150] = scores[70] = 2;
  scores[199] = 3;
  scores[0] = -kInfinity;
  const auto best =
      best_tokens(Tensor::from<float>({1, 200}, scores), std::vector<std::int64_t>{5});
  Tokens tokens;
  for (const ScoredToken& t : best[0]) tokens.push_back(t.token);
  EXPECT_EQ(tokens, (Tokens{199, 70, 150, 1, 2}));
  const auto few = best_tokens(Tensor::from<float>({1, 3}, {0.0f, -kInfinity, 1.0f}),
                               std::vector<std::int64_t>{3});
  EXPECT_EQ(few[0].size(), 2u);
  EXPECT_NEAR(few[0][0].log_probability, -std::log(1 + std::exp(-1.0)), 1e-6);
}

TEST(Beam, RefusesScoresThatAreNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> two = {2, 2};
  for (const float bad : {NAN, kInfinity})
    EXPECT_THROW(best_tokens(Tensor::from<float>({2, 3}, {1, 2, 3, 1, bad, 3}), two), Error);
  EXPECT_THROW(best_tokens(Tensor::from<float>({2, 1}, {1.0f, -kInfinity}), two), Error);
}

TEST(Beam, RefusesOptionsByName) {
  const TreeModel model({});
  const auto refused = [&](const auto& change, const std::string& problem,
                           const Decoding& decoding = {}) {
    BeamOptions o;
    change(o);
    try {
      beam_continue(model, kBeamPrompt, 4, o, decoding);
      ADD_FAILURE() << problem;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), problem);
    }
  };
  refused([](BeamOptions& o) { o.beam = 0; }, "option beam");
  refused([](BeamOptions& o) { o.beam = 1 << 20; }, "option beam");
  refused([](BeamOptions& o) { o.best = 6; }, "option best");
  refused([](BeamOptions& o) { o.best = 0; }, "option best");
  refused([](BeamOptions& o) { o.length_penalty = -1; }, "option length_penalty");
  refused([](BeamOptions& o) { o.length_penalty = NAN; }, "option length_penalty");
  refused([](BeamOptions&) {}, "end token", {.ends = {4}});
  EXPECT_THROW(beam_continue(model, kBeamPrompt, 0, {}, {}), Error);
  EXPECT_THROW(beam_continue(model, Tokens{}, 3, {}, {}), Error);
  EXPECT_THROW(beam_continue(model, Tokens{9}, 3, {}, {}), Error);
}

}  // namespace
}  // namespace heddle::generate
