// Options and results of text generation, for everything that samples tokens (LanguageModel) or
// searches for the most probable ones (LanguageModel, Translator).
//
//   const heddle::GenerationOptions options = {
//       .tokens = 100, .sampling = {.temperature = 0.8, .top_p = 0.9, .seed = 1}, .stop = {"\n"}};
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// A number that is added to the score of a token; minus infinity forbids it.
struct LogitBias {
  std::int32_t token = 0;
  double bias = 0;
};

// Options for drawing one token from the scores of all. The steps, in this order:
//   1. logit_bias is added to the scores of its tokens
//   2. repetition_penalty: scores of tokens that were already there, in the prompt or behind it,
//      are divided by it when positive, multiplied when negative (Keskar et al. 2019)
//   3. presence_penalty is subtracted from the scores of tokens that were written behind the
//      prompt, frequency_penalty as often as they were
//   4. temperature: scores are divided by it; 0 takes the best token, and 5 to 7 do nothing
//   5. top_k: the k best stay
//   6. top_p: of the best, as many as it takes to reach the probability p stay (Holtzman et al.
//      2020); the probabilities are those of what top_k left
//   7. min_p: tokens stay that are at least p times as probable as the best
//   8. one of them is drawn
// The best token always stays. Of equal scores, the one with the lower id ranks first.
struct SamplingOptions {
  double temperature = 1;         // 0: always the most probable token
  std::int64_t top_k = 0;         // 0: all
  double top_p = 1;               // 1: all
  double min_p = 0;               // 0: all
  double repetition_penalty = 1;  // 1: none
  double presence_penalty = 0;    // 0: none
  double frequency_penalty = 0;   // 0: none
  std::vector<LogitBias> logit_bias = {};
  std::uint64_t seed = 0;  // same seed, same text
};

struct GenerationOptions {
  std::optional<std::int64_t> tokens = {};  // at most; absent: 256, or what fits the context
  SamplingOptions sampling = {};
  std::int64_t samples = 1;            // number of continuations, generated side by side
  std::vector<std::string> stop = {};  // texts end before the first of these
  bool slide = false;  // past the context, continue from its last half, which is read again
  // Prompt lookup: where the last tokens were there before, up to so many of those that followed
  // are tried at once. What is tried is kept only where the model would have written it: no bit of
  // the text changes, and texts that repeat their prompt come faster. 0: none. One sample, with a
  // cache and without sliding, of a model that can take tokens back (not a recurrent one).
  std::int64_t lookup = 0;
  // Without a cache of keys and values everything is recomputed for each token. This shows what the
  // cache is worth, and proves that it changes nothing.
  bool cache = true;
  // Asked before each token, and while a long prompt is read after every block of it; once it is
  // true the texts end where they are (Finish::cancelled).
  std::function<bool()> cancelled = {};
};

enum class Finish : std::uint8_t {
  length,     // all tokens that were requested
  end,        // the model ended the text
  stop,       // a stop string
  cancelled,  // GenerationOptions::cancelled
};

std::string_view to_string(Finish finish);

struct Sample {
  std::vector<std::int32_t> tokens;  // without the end token
  std::string text;                  // their text, without the prompt
  Finish finish = Finish::length;
};

struct Generation {
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;  // of the prompt, which an earlier answer had read (Chat)
  std::vector<Sample> samples;
  double prompt_seconds = 0;      // until the first token can be drawn
  double decode_seconds = 0;      // from there on
  std::int64_t tried_tokens = 0;  // by GenerationOptions::lookup
  std::int64_t kept_tokens = 0;   // of these

  const std::string& text() const { return samples.front().text; }  // of the first sample
};

// Receives text of a sample as soon as it is certain: UTF-8, in pieces of any length. It may throw
// to stop.
using TextSink = std::function<void(std::int64_t sample, std::string_view piece)>;

// Receives a text that is complete, with the number of its prompt. It may throw to stop.
using TextDone = std::function<void(std::size_t prompt, const Generation& text)>;

// The divisor of log-probabilities: length^penalty, or ((5 + length) / 6)^penalty (Wu et al. 2016).
// The end token counts.
enum class LengthNorm : std::uint8_t { mean, gnmt };

std::string_view to_string(LengthNorm norm);

// Whether finished hypotheses take the places of live ones, so that the search narrows, or as many
// stay live to the end, as in Hugging Face's transformers.
enum class BeamKind : std::uint8_t { narrowing, full };

std::string_view to_string(BeamKind kind);

inline constexpr std::int64_t kMostBeams = 1024;

// Beam search: looks for the most probable texts, following several at once.
struct BeamOptions {
  std::int64_t beam = 5;  // hypotheses kept side by side; 1 is greedy
  std::int64_t best = 1;  // hypotheses returned, at most `beam`
  BeamKind kind = BeamKind::narrowing;
  LengthNorm norm = LengthNorm::mean;
  double length_penalty = 1;  // 0 favours short texts, more favours longer ones
};

struct Hypothesis {
  std::vector<std::int32_t> tokens;  // without the end token
  std::string text;                  // their text
  double log_probability = 0;        // with the end token where it is finished
  double score = 0;                  // the log-probability, divided as LengthNorm says
  bool finished = false;             // ends with the end token
};

struct SearchResult {
  std::int64_t prompt_tokens = 0;
  std::vector<Hypothesis> best;  // the best first
  double seconds = 0;
};

}  // namespace heddle
