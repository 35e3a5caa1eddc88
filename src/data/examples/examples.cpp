#include "data/examples/examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/memory_of.h"
#include "data/order/draw.h"
#include "heddle/error.h"

namespace heddle::data {

void check_batch(std::int64_t batch) {
  if (batch < 1)
    fail(ErrorCode::invalid_argument, "data", "batch", "at least 1", std::to_string(batch));
}

void check_index(std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count)
    fail(ErrorCode::out_of_range, "data", "number of a batch", "0 to " + std::to_string(count - 1),
         std::to_string(index));
}

void fail_no_split(Split split) {
  constexpr std::array<const char*, kSplits> kNames = {"training", "validation", "test"};
  fail(ErrorCode::invalid_argument, "data",
       std::string("there is no ") + kNames[static_cast<std::size_t>(split)] + " data");
}

ExampleDataset::ExampleDataset(std::shared_ptr<const Codec> codec,
                               std::array<ExampleSplit, kSplits> splits, std::string summary)
    : Dataset(std::move(codec)), splits_(std::move(splits)), summary_(std::move(summary)) {
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    if (!splits_[i].examples) continue;
    const Examples& examples = *splits_[i].examples;
    std::vector<std::uint64_t>& lengths = prepared_[i].lengths;
    lengths.resize(static_cast<std::size_t>(examples.count()));
    for (std::size_t j = 0; j < lengths.size(); ++j)
      lengths[j] = examples.length_key(static_cast<std::int64_t>(j));
    std::vector<std::int64_t>& sorted = prepared_[i].evaluation;
    sorted.resize(lengths.size());
    std::iota(sorted.begin(), sorted.end(), std::int64_t{0});
    std::sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
      return std::pair(lengths[static_cast<std::size_t>(a)], a) <
             std::pair(lengths[static_cast<std::size_t>(b)], b);
    });
  }
}

const Examples& ExampleDataset::examples(Split split) const {
  if (!has(split)) fail_no_split(split);
  return *splits_[static_cast<std::size_t>(split)].examples;
}

bool ExampleDataset::has(Split split) const {
  return splits_[static_cast<std::size_t>(split)].examples != nullptr;
}

std::int64_t ExampleDataset::bytes() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const ExampleSplit& split = splits_[i];
    if (!split.examples) continue;
    sum += split.examples->bytes() + memory_of(prepared_[i].lengths) +
           memory_of(prepared_[i].evaluation) + memory_of(split.pairs);
    for (const TextPair& pair : split.pairs) sum += memory_of(pair.source) + memory_of(pair.target);
  }
  return sum;
}

std::int64_t ExampleDataset::epoch_steps(std::int64_t batch) const {
  check_batch(batch);
  return batches_of(examples(Split::training).count(), batch);
}

std::shared_ptr<const EpochOrder> ExampleDataset::order(std::uint64_t seed, std::int64_t epoch,
                                                        std::int64_t batch) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!cached_.order || cached_.seed != seed || cached_.epoch != epoch || cached_.batch != batch) {
    const std::vector<std::uint64_t>& lengths =
        prepared_[static_cast<std::size_t>(Split::training)].lengths;
    cached_ = {seed, epoch, batch, std::make_shared<EpochOrder>(lengths, batch, seed, epoch)};
  }
  return cached_.order;
}

model::Batch ExampleDataset::training_batch(std::int64_t step, std::int64_t batch,
                                            std::uint64_t seed) const {
  const Examples& training = examples(Split::training);
  const std::int64_t steps = epoch_steps(batch);
  const RandomKey augment = stream_key(seed, step, Stream::images);
  const std::shared_ptr<const EpochOrder> epoch = order(seed, step / steps, batch);
  return training.make(epoch->batch(step % steps), augment);
}

BatchShape ExampleDataset::training_shape(std::int64_t step, std::int64_t batch,
                                          std::uint64_t seed) const {
  const std::int64_t steps = epoch_steps(batch);
  return examples(Split::training).shape(order(seed, step / steps, batch)->batch(step % steps));
}

std::int64_t ExampleDataset::batches(Split split, std::int64_t batch) const {
  check_batch(batch);
  return batches_of(examples(split).count(), batch);
}

model::Batch ExampleDataset::batch(Split split, std::int64_t index, std::int64_t batch) const {
  check_index(index, batches(split, batch));
  const std::vector<std::int64_t>& sorted = prepared_[static_cast<std::size_t>(split)].evaluation;
  const auto begin = static_cast<std::size_t>(index * batch);
  const std::size_t count = std::min(static_cast<std::size_t>(batch), sorted.size() - begin);
  return examples(split).make({sorted.data() + begin, count}, std::nullopt);
}

std::span<const TextPair> ExampleDataset::pairs(Split split) const {
  return splits_[static_cast<std::size_t>(split)].pairs;
}

}  // namespace heddle::data
