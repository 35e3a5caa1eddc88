// Vectors of many texts; `precision` is that of activations.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/codec/codec.h"
#include "heddle/images.h"
#include "model/model.h"

namespace heddle::generate {

struct EmbedRequest {
  model::Pooling pooling = model::Pooling::mean;
  bool normalise = false;
  std::int64_t longest = 0;  // tokens of a text
  std::int64_t batch = 64;   // texts at a time
};

// [texts, C] f32 (f64 with that precision) on the CPU, in the order of the texts. Throws Error,
// naming the line, for a text that has no tokens or more than `longest`, and for vectors that are
// not finite.
Tensor embed_texts(const model::Model& model, const data::Codec& codec,
                   std::span<const std::string_view> texts, const EmbedRequest& request,
                   DType precision = DType::f32);

// The same of images, in the order in which they come. Throws Error, naming the image, for one of
// another size than the model's.
Tensor embed_images(const model::Model& model, const data::Codec& codec,
                    std::span<const NamedImage> images, const EmbedRequest& request,
                    DType precision = DType::f32);

}  // namespace heddle::generate
