// Images through a codec.
#include <algorithm>

#include "data/codec/codec.h"
#include "data/images/image_data.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

const ImageFacts& facts_of(const Codec& codec) {
  if (!codec.image())
    fail(ErrorCode::invalid_argument, "codec", "images cannot be read", "a model of images",
         model::to_string(codec.task()));
  return *codec.image();
}

// image: u8 [C, H, W]
void write_normalised(const ImageFacts& facts, const Tensor& given, float* out) {
  const bool fits = facts.fit && given.defined() && given.rank() == 3 &&
                    given.dtype() == DType::u8 && given.elements() > 0;
  const Tensor image = fits ? fitted(*facts.fit, given) : given;
  const bool sizes = image.defined() && image.rank() == 3 && image.dtype() == DType::u8 &&
                     image.size(1) == facts.height && image.size(2) == facts.width &&
                     (image.size(0) == facts.channels || image.size(0) == 1);
  if (!sizes)
    fail(ErrorCode::shape_mismatch, "codec", "size of an image",
         "u8 " + to_string(Shape{facts.channels, facts.height, facts.width}), image.describe());
  const std::vector<std::uint8_t> bytes = image.to_vector<std::uint8_t>();
  const auto plane = static_cast<std::size_t>(facts.height * facts.width);
  const std::vector<ByteValues> values = normalised_bytes(facts);
  for (std::size_t channel = 0; channel < values.size(); ++channel) {
    const std::uint8_t* from = bytes.data() + (image.size(0) == 1 ? 0 : channel * plane);
    out = std::transform(from, from + plane, out,
                         [&](std::uint8_t byte) { return values[channel][byte]; });
  }
}

}  // namespace

Tensor Codec::encode_image(const Tensor& image) const {
  const ImageFacts& facts = facts_of(*this);
  Tensor result = Tensor::empty({facts.channels, facts.height, facts.width});
  write_normalised(facts, image, result.mutable_data<float>());
  return result;
}

model::Batch Codec::batch_of_images(std::span<const Tensor> images) const {
  const ImageFacts& facts = facts_of(*this);
  const auto rows = static_cast<std::int64_t>(images.size());
  model::Batch batch;
  batch.images = Tensor::empty({rows, facts.channels, facts.height, facts.width});
  auto* out = batch.images.mutable_data<float>();
  for (const Tensor& image : images) {
    write_normalised(facts, image, out);
    out += facts.channels * facts.height * facts.width;
  }
  return batch;
}

}  // namespace heddle::data
