#include "data/images/image_data.h"

#include <cmath>
#include <utility>

#include "data/memory_of.h"
#include "data/order/draw.h"

namespace heddle::data {

ImageFacts measure_images(const ImageStore& store, std::span<const std::int64_t> chosen) {
  ImageFacts facts{store.channels, store.height, store.width, {}, {}};
  const auto plane = static_cast<std::size_t>(store.height * store.width);
  for (std::int64_t channel = 0; channel < store.channels; ++channel) {
    std::array<std::int64_t, 256> counts{};
    for (const std::int64_t image : chosen) {
      const std::uint8_t* begin = store.pixels.data() +
                                  static_cast<std::size_t>(image) * store.image_bytes() +
                                  static_cast<std::size_t>(channel) * plane;
      for (std::size_t i = 0; i < plane; ++i) ++counts[begin[i]];
    }
    double total = 0, sum = 0, squares = 0;
    for (std::size_t value = 0; value < counts.size(); ++value) {
      const double x = static_cast<double>(value) / 255, n = static_cast<double>(counts[value]);
      total += n;
      sum += n * x;
      squares += n * x * x;
    }
    const double mean = sum / total;
    const double variance = squares / total - mean * mean;
    facts.mean.push_back(static_cast<float>(mean));
    // Rounding leaves up to 1e-16 of a channel that never changes; one grey level is 4e-3.
    facts.deviation.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  return facts;
}

std::vector<ByteValues> normalised_bytes(const ImageFacts& facts) {
  std::vector<ByteValues> values(facts.mean.size());
  for (std::size_t channel = 0; channel < values.size(); ++channel)
    for (std::size_t byte = 0; byte < 256; ++byte)
      values[channel][byte] =
          (static_cast<float>(byte) / 255.0f - facts.mean[channel]) / facts.deviation[channel];
  return values;
}

ImageExamples::ImageExamples(std::shared_ptr<const ImageStore> store,
                             std::vector<std::int64_t> chosen, const ImageFacts& facts,
                             const Augmentation& augmentation)
    : store_(std::move(store)),
      chosen_(std::move(chosen)),
      values_(normalised_bytes(facts)),
      augmentation_(augmentation) {}

ImageExamples::Change ImageExamples::change(const RandomKey& key, std::uint64_t row) const {
  const auto ways = static_cast<std::uint64_t>(2 * augmentation_.shift + 1);
  const auto move = [&](std::uint64_t which) {
    return static_cast<std::int64_t>(draw(key, 3 * row + which, ways)) - augmentation_.shift;
  };
  return {augmentation_.flip && draw(key, 3 * row, 2) == 1, move(1), move(2)};
}

void ImageExamples::write(const std::uint8_t* image, const Change& change, float* out) const {
  const std::int64_t height = store_->height, width = store_->width;
  for (const ByteValues& values : values_) {
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t from_y = y - change.down;
      const bool row_inside = from_y >= 0 && from_y < height;
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t moved = x - change.right;
        const std::int64_t from_x = change.flip ? width - 1 - moved : moved;
        const bool inside = row_inside && from_x >= 0 && from_x < width;
        *out++ = values[inside ? image[from_y * width + from_x] : 0];
      }
    }
    image += height * width;
  }
}

model::Batch ImageExamples::make(std::span<const std::int64_t> examples,
                                 const std::optional<RandomKey>& augment) const {
  const auto rows = static_cast<std::int64_t>(examples.size());
  model::Batch batch;
  batch.images = Tensor::empty({rows, store_->channels, store_->height, store_->width});
  batch.targets = Tensor::empty({rows}, DType::i32);
  auto* pixels = batch.images.mutable_data<float>();
  auto* labels = batch.targets.mutable_data<std::int32_t>();
  const bool changes = augment && (augmentation_.flip || augmentation_.shift > 0);
  for (std::size_t row = 0; row < examples.size(); ++row) {
    const auto image = static_cast<std::size_t>(chosen_[static_cast<std::size_t>(examples[row])]);
    write(store_->pixels.data() + image * store_->image_bytes(),
          changes ? change(*augment, row) : Change{}, pixels + row * store_->image_bytes());
    labels[row] = store_->labels[image];
  }
  batch.counted = rows;
  return batch;
}

// Splits share a store; each counts its own images of it.
std::int64_t ImageExamples::bytes() const {
  const auto image = static_cast<std::int64_t>(store_->image_bytes() + sizeof(std::int32_t));
  return count() * image + memory_of(chosen_) + memory_of(values_);
}

}  // namespace heddle::data
