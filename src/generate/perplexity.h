// How well a language model predicts a text of any length, through windows that it can read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "model/model.h"

namespace heddle::generate {

struct PerplexityOptions {
  std::int64_t window = 0;  // tokens that are read at once; 0: the model's context
  // Windows begin so many tokens apart; 0: half a window, so that every counted token but the first
  // ones has half a window before it. With a whole window the first token of each is not counted.
  std::int64_t stride = 0;
  // Of every window, so many tokens at its beginning are read and not counted. Absent: those that
  // the window before has counted. llama.cpp's perplexity takes windows of 512, a stride of 512,
  // and does not count 257.
  std::optional<std::int64_t> skip = {};
  DType precision = DType::f32;
  std::function<void(std::int64_t done, std::int64_t all)> progress = [](std::int64_t,
                                                                         std::int64_t) {};
};

struct Perplexity {
  double loss = 0;  // mean negative log-likelihood of the counted tokens, in nats
  double perplexity = 0;
  std::int64_t tokens = 0;   // of the text
  std::int64_t counted = 0;  // the first token of a text is never predicted
  std::int64_t windows = 0;
};

// Throws Error for a text of fewer than two tokens and for windows that the model cannot read.
Perplexity perplexity(const model::Model& model, std::span<const std::int32_t> tokens,
                      const PerplexityOptions& options);

}  // namespace heddle::generate
