// Text by a language model, token by token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/decode/decoding.h"
#include "heddle/generation.h"
#include "model/model.h"

namespace heddle::generate {

inline constexpr std::int64_t kMostSamples = 1024;  // and texts at a time
inline constexpr std::int64_t kMostLookup = 64;

// Continues the prompt (one token or more). Sample i is the same whatever the number of samples.
// Throws Error for a model that does not write language, for tokens outside of its vocabulary, and
// as context.h says. Without a tokenizer stop strings are refused.
Generation generate(const model::Model& model, std::span<const std::int32_t> prompt,
                    const GenerationOptions& options, const Decoding& decoding = {},
                    const TextSink& sink = {});

// Continues many prompts, at most `batch` at the same time; each with the bits that it has alone.
// Several samples, sliding or no cache are done prompt by prompt.
std::vector<Generation> generate_each(const model::Model& model,
                                      std::span<const std::span<const std::int32_t>> prompts,
                                      const GenerationOptions& options, std::int64_t batch,
                                      const Decoding& decoding = {}, const TextDone& done = {});

// For all that reads a prompt: throws Error unless the model writes language and the tokens are of
// its vocabulary, one or more.
void check_prompt(const model::Model& model, std::span<const std::int32_t> prompt);

}  // namespace heddle::generate
