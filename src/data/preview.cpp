#include "data/preview.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle::data {
namespace {

using model::Task;

// The row's ids up to its length, joined by spaces; name(id) names one.
template <class Name>
std::string join_row(const Tensor& values, std::int64_t row, std::int64_t length,
                     const Name& name) {
  std::string text;
  const std::int32_t* ids = values.data<std::int32_t>() + row * values.size(1);
  for (std::int64_t i = 0; i < length; ++i) {
    if (i > 0) text += ' ';
    text += ids[i] == model::kIgnore ? "·" : name(ids[i]);
  }
  return text;
}

std::int64_t length_of(const Tensor& lengths, const Tensor& tokens, std::int64_t row) {
  return lengths.defined() ? lengths.data<std::int64_t>()[row] : tokens.size(1);
}

Preview preview_of_tokens(const Codec& codec, const model::Batch& batch, std::int64_t row) {
  const auto source = [&](std::int32_t id) { return codec.source().token(id); };
  const auto target = [&](std::int32_t id) { return codec.target().token(id); };
  const auto label = [&](std::int32_t id) { return codec.label(id); };
  const std::int64_t length = length_of(batch.lengths, batch.tokens, row);
  Preview result{join_row(batch.tokens, row, length, source), {}};
  switch (codec.task()) {
    case Task::language:
    case Task::masked: result.wanted = join_row(batch.targets, row, length, source); break;
    case Task::tag: result.wanted = join_row(batch.targets, row, length, label); break;
    case Task::classify: result.wanted = label(batch.targets.data<std::int32_t>()[row]); break;
    case Task::embed: break;
    case Task::translate:
      result.wanted = join_row(batch.targets, row,
                               length_of(batch.target_lengths, batch.target_tokens, row), target);
      break;
  }
  return result;
}

// Dark to bright, the mean of the channels; every second row, since characters are twice as high
// as wide.
std::string drawn(const model::Batch& batch, std::int64_t row) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const std::int64_t channels = batch.images.size(1), height = batch.images.size(2),
                     width = batch.images.size(3);
  const float* image = batch.images.data<float>() + row * channels * height * width;
  const auto brightness = [&](std::int64_t y, std::int64_t x) {
    float sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += image[(c * height + y) * width + x];
    return sum;
  };
  float low = brightness(0, 0), high = low;
  for (std::int64_t i = 0; i < height * width; ++i) {
    low = std::min(low, brightness(i / width, i % width));
    high = std::max(high, brightness(i / width, i % width));
  }
  const float range = high > low ? high - low : 1;
  std::string text;
  for (std::int64_t y = 0; y < height; y += 2) {
    for (std::int64_t x = 0; x < width; ++x) {
      const float share = (brightness(y, x) - low) / range;
      text += kShades[static_cast<std::size_t>(share * static_cast<float>(kShades.size() - 1))];
    }
    text += '\n';
  }
  return text;
}

// A batch is made whole even if little of it is shown.
void check_can_be_shown(const Dataset& data, const BatchShape& shape) {
  constexpr double kMostValues = 1 << 28;
  const model::DataSizes sizes = data.codec().sizes();
  const auto each = static_cast<double>(shape.tokens + shape.target_tokens +
                                        sizes.channels * sizes.height * sizes.width);
  if (static_cast<double>(shape.sequences) * each > kMostValues)
    fail(ErrorCode::invalid_argument, "data", "examples of a batch this large (train.batch)",
         "at most 268435456 tokens or pixels in a batch", std::to_string(shape.sequences));
}

}  // namespace

std::vector<Preview> preview(const Dataset& data, std::int64_t count, std::int64_t batch_size,
                             std::uint64_t seed) {
  std::vector<Preview> previews;
  const std::int64_t steps = data.epoch_steps(batch_size);
  for (std::int64_t step = 0; step < steps; ++step) {
    check_can_be_shown(data, data.training_shape(step, batch_size, seed));
    const model::Batch batch = data.training_batch(step, batch_size, seed);
    const bool images = batch.images.defined();
    const std::int64_t rows = images ? batch.images.size(0) : batch.tokens.size(0);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (static_cast<std::int64_t>(previews.size()) == count) return previews;
      if (images)
        previews.push_back(
            {drawn(batch, row), data.codec().label(batch.targets.data<std::int32_t>()[row])});
      else
        previews.push_back(preview_of_tokens(data.codec(), batch, row));
    }
  }
  return previews;
}

}  // namespace heddle::data
