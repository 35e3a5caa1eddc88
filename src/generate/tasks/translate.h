// Texts into other texts, by beam search over many at once; `precision` is that of activations.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "heddle/translator.h"
#include "model/model.h"
#include "text/bleu.h"

namespace heddle::generate {

// In the order of the texts. The result does not depend on which texts are translated together,
// but for the rounding of sums. Throws Error for a model that does not translate, and, naming the
// line, for a text that the tokenizer refuses or that has more tokens than learned positions.
std::vector<Translation> translate(const model::Model& model, const data::Codec& codec,
                                   std::span<const std::string_view> texts,
                                   const TranslationOptions& options, DType precision = DType::f32);

// BLEU of the translations of a split, against the texts as they are in its files. Throws Error
// when the data has no such split.
text::Bleu translation_bleu(const model::Model& model, const data::Dataset& data, data::Split split,
                            const TranslationOptions& options, DType precision = DType::f32);

}  // namespace heddle::generate
