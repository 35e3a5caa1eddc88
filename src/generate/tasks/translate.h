// Texts into other texts, by beam search over many at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "generate/decode/beam.h"
#include "model/model.h"
#include "text/bleu.h"

namespace heddle::generate {

struct TranslateOptions {
  BeamOptions beam = {};
  std::int64_t batch = 64;  // texts at a time, at most; of similar length
  // A translation has at most so many tokens: ratio · tokens of its source + extra, and not more
  // than the model has positions.
  double longest_ratio = 2;
  std::int64_t longest_extra = 10;
  DType precision = DType::f32;
  // Called after each batch with the number of texts done and of all.
  std::function<void(std::size_t, std::size_t)> progress = {};
};

struct Translation {
  std::string text;                // the best; empty for a text of nothing but white space
  std::int64_t source_tokens = 0;  // end token included
  std::vector<Hypothesis> best;    // n-best, the best first; none for such a text
};

// In the order of the texts. The result does not depend on which texts are translated together,
// but for the rounding of sums. Throws Error for a model that does not translate, and, naming the
// line, for a text that the tokenizer refuses or that has more tokens than learned positions.
std::vector<Translation> translate(const model::Model& model, const data::Codec& codec,
                                   std::span<const std::string_view> texts,
                                   const TranslateOptions& options);

// BLEU of the translations of a split, against the texts as they are in its files. Throws Error
// when the data has no such split.
text::Bleu translation_bleu(const model::Model& model, const data::Dataset& data, data::Split split,
                            const TranslateOptions& options);

}  // namespace heddle::generate
