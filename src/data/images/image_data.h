// Images of one size with a label each, as bytes, and batches of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/examples/examples.h"

namespace heddle::data {

struct ImageStore {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};  // [N, channels, height, width]
  std::vector<std::int32_t> labels = {};  // [N]

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::size_t image_bytes() const { return static_cast<std::size_t>(channels * height * width); }
};

// Mean and deviation of each channel over the chosen images; a channel that never changes has the
// deviation 1. Exact: made of counts of the 256 values.
ImageFacts measure_images(const ImageStore& store, std::span<const std::int64_t> chosen);

// The normalised value of each byte, channel by channel.
using ByteValues = std::array<float, 256>;
std::vector<ByteValues> normalised_bytes(const ImageFacts& facts);

struct Augmentation {
  bool flip = false;       // mirror half of the images
  std::int64_t shift = 0;  // move each by up to this many pixels both ways; filled with 0
};

class ImageExamples final : public Examples {
 public:
  // `chosen`: the images of this split.
  ImageExamples(std::shared_ptr<const ImageStore> store, std::vector<std::int64_t> chosen,
                const ImageFacts& facts, const Augmentation& augmentation);

  std::int64_t count() const override { return static_cast<std::int64_t>(chosen_.size()); }
  std::uint64_t length_key(std::int64_t) const override { return 0; }
  BatchShape shape(std::span<const std::int64_t> examples) const override {
    return {static_cast<std::int64_t>(examples.size())};
  }
  model::Batch make(std::span<const std::int64_t> examples,
                    const std::optional<RandomKey>& augment) const override;
  std::int64_t bytes() const override;

 private:
  struct Change {
    bool flip = false;
    std::int64_t down = 0, right = 0;
  };
  Change change(const RandomKey& key, std::uint64_t row) const;
  void write(const std::uint8_t* image, const Change& change, float* out) const;

  std::shared_ptr<const ImageStore> store_;
  std::vector<std::int64_t> chosen_;
  std::vector<ByteValues> values_;
  Augmentation augmentation_;
};

}  // namespace heddle::data
