#include "generate/decode/context.h"

#include <algorithm>
#include <string>
#include <variant>

#include "heddle/error.h"
#include "nn/attention/config.h"

namespace heddle::generate {

std::optional<std::int64_t> position_limit(const model::ModelConfig& config) {
  const bool learned = std::holds_alternative<nn::LearnedPosition>(config.attention.position);
  if (config.recurrent() || !learned) return std::nullopt;
  return config.sizes.context;
}

Window plan_window(const model::ModelConfig& config, std::int64_t prompt, std::int64_t tokens,
                   bool slide) {
  if (slide && config.recurrent())
    fail(ErrorCode::invalid_argument, "generate", "option slide",
         "a model with a context; a recurrent one goes on for ever without it",
         model::to_string(config.kind));
  if (slide) return {config.sizes.context};
  const auto limit = position_limit(config);
  // The last token is written, and not read any more.
  if (limit && prompt + tokens - 1 > *limit)
    fail(ErrorCode::invalid_argument, "generate",
         "the model has learned " + std::to_string(*limit) + " positions",
         "a prompt and tokens that fit, or sliding (--slide)",
         std::to_string(prompt) + " tokens of prompt and " + std::to_string(tokens) + " more");
  return {limit};
}

std::int64_t tokens_that_fit(const model::ModelConfig& config, std::int64_t prompt,
                             std::int64_t wanted) {
  const auto limit = position_limit(config);
  return limit ? std::clamp<std::int64_t>(*limit + 1 - prompt, 1, wanted) : wanted;
}

}  // namespace heddle::generate
