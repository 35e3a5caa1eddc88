// Labels: of texts, of images, and of the words of sentences; `precision` is that of activations.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "heddle/prediction.h"
#include "heddle/tagger.h"
#include "model/model.h"

namespace heddle::generate {

// Of equal probabilities the label with the lower id. Texts longer than the ones the model learned
// from are cut, as they were in training. All throw Error for a model that does something else.
std::vector<Prediction> classify_texts(const model::Model& model, const data::Codec& codec,
                                       std::span<const std::string_view> texts,
                                       const PredictionOptions& options = {},
                                       DType precision = DType::f32);

// images: u8 [C, H, W], of the size that the model learned from.
std::vector<Prediction> classify_images(const model::Model& model, const data::Codec& codec,
                                        std::span<const Tensor> images,
                                        const PredictionOptions& options = {},
                                        DType precision = DType::f32);

// The tag of each word. Errors name the sentence, from 1, as a line.
std::vector<std::vector<Prediction>> tag_sentences(const model::Model& model,
                                                   const data::Codec& codec,
                                                   std::span<const Words> sentences,
                                                   const PredictionOptions& options = {},
                                                   DType precision = DType::f32);

}  // namespace heddle::generate
