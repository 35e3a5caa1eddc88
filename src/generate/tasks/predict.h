// Labels: of texts, of images, and of the words of sentences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "model/model.h"

namespace heddle::generate {

struct PredictOptions {
  std::int64_t batch = 64;  // texts, images or sentences at a time, at most
  DType precision = DType::f32;
};

struct Prediction {
  std::int32_t label = -1;            // -1: a text of nothing but white space has none
  double probability = 0;             // of the label
  std::vector<double> probabilities;  // of all labels
  bool cut = false;                   // the text was too long: its beginning was classified
};

// Of equal probabilities the label with the lower id. Texts longer than the ones the model learned
// from are cut, as they were in training. All throw Error for a model that does something else.
std::vector<Prediction> classify_texts(const model::Model& model, const data::Codec& codec,
                                       std::span<const std::string_view> texts,
                                       const PredictOptions& options = {});

// images: u8 [C, H, W], of the size that the model learned from.
std::vector<Prediction> classify_images(const model::Model& model, const data::Codec& codec,
                                        std::span<const Tensor> images,
                                        const PredictOptions& options = {});

using Words = std::vector<std::string_view>;

// The tag of each word. Errors name the sentence, from 1, as a line.
std::vector<std::vector<Prediction>> tag_sentences(const model::Model& model,
                                                   const data::Codec& codec,
                                                   std::span<const Words> sentences,
                                                   const PredictOptions& options = {});

}  // namespace heddle::generate
