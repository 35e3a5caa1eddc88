// Text by a language model, token by token.
#pragma once

#include <cstdint>
#include <span>

#include "generate/decode/decoding.h"
#include "heddle/generation.h"
#include "model/model.h"

namespace heddle::generate {

inline constexpr std::int64_t kMostSamples = 1024;

// Continues the prompt (one token or more). Sample i is the same whatever the number of samples.
// Throws Error for a model that does not write language, for tokens outside of its vocabulary, and
// as context.h says. Without a tokenizer stop strings are refused.
Generation generate(const model::Model& model, std::span<const std::int32_t> prompt,
                    const GenerationOptions& options, const Decoding& decoding = {},
                    const TextSink& sink = {});

// For all that reads a prompt: throws Error unless the model writes language and the tokens are of
// its vocabulary, one or more.
void check_prompt(const model::Model& model, std::span<const std::int32_t> prompt);

}  // namespace heddle::generate
