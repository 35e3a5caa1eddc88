// Text by a language model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/decode/sampler.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace heddle::generate {

inline constexpr std::int64_t kDefaultTokens = 256;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostSamples = 1024;

struct GenerateOptions {
  SamplerOptions sampler = {};
  std::optional<std::int64_t> tokens = {};  // at most; absent: 256, or what fits the context
  std::int64_t samples = 1;                 // that many continuations, side by side
  std::optional<std::int32_t> end = {};     // the token that ends a text; it is not part of it
  std::vector<std::string> stop = {};       // texts end before the first of these
  bool slide = false;                       // see context.h
  // Without a cache of keys and values everything is computed again for each token: what the cache
  // is worth, and the proof that it changes nothing.
  bool cache = true;
  DType precision = DType::f32;  // of activations
};

enum class Finish : std::uint8_t {
  length,  // all tokens that were asked for
  end,     // the end token
  stop,    // a stop string
};

std::string_view to_string(Finish finish);

struct Sample {
  std::vector<std::int32_t> tokens;  // without the end token
  std::string text;                  // of them; empty without a tokenizer
  Finish finish = Finish::length;
};

struct Generation {
  std::int64_t prompt_tokens = 0;
  std::vector<Sample> samples;
  double prompt_seconds = 0;  // until the first token can be drawn
  double decode_seconds = 0;  // from there on
};

// Gets text of a sample as soon as it is certain: UTF-8, pieces of any length. It may throw to give
// up.
using TextSink = std::function<void(std::int64_t sample, std::string_view piece)>;

// Continues the prompt (one token or more). Sample i is the same whatever the number of samples.
// Throws Error for a model that does not write language, for tokens outside of its vocabulary, and
// as context.h says. Without a tokenizer there is no text, and stop strings are refused.
Generation generate(const model::Model& model, std::span<const std::int32_t> prompt,
                    const GenerateOptions& options, const text::Tokenizer* tokenizer = nullptr,
                    const TextSink& sink = {});

// For all that reads a prompt: throws Error unless the model writes language and the tokens are of
// its vocabulary, one or more.
void check_prompt(const model::Model& model, std::span<const std::int32_t> prompt);

}  // namespace heddle::generate
