#include "train/fingerprint.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace heddle::train {

namespace {

constexpr std::uint64_t kEmpty = 0xcbf29ce484222325u, kPrime = 0x100000001b3u;

void add(std::uint64_t& hash, const Tensor& tensor) {
  if (!tensor.defined()) return;
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw());
  for (const unsigned char byte : std::span(bytes, tensor.bytes()))
    hash = (hash ^ byte) * kPrime;  // FNV-1a
}

void add(std::uint64_t& hash, const model::Batch& batch) {
  for (const Tensor* tensor : {&batch.tokens, &batch.images, &batch.target_tokens, &batch.targets})
    add(hash, *tensor);
}

}  // namespace

std::uint64_t fingerprint(const data::Dataset& data, const recipe::TrainConfig& config) {
  std::uint64_t hash = kEmpty;
  // From several epochs, so that the batches are drawn from all of the data.
  for (const std::int64_t step : {0, 13, 1009, 100003})
    add(hash, data.training_batch(step, config.batch, config.seed));
  return hash;
}

std::uint64_t validation_fingerprint(const data::Dataset& data, const recipe::TrainConfig& config) {
  if (!data.has_validation()) return 0;
  constexpr std::int64_t kMost = 64;
  const std::int64_t all = data.batches(data::Split::validation, config.batch);
  std::uint64_t hash = (kEmpty ^ static_cast<std::uint64_t>(all)) * kPrime;
  const std::int64_t read = std::min(all, kMost);
  for (std::int64_t i = 0; i < read; ++i)  // the first and the last among them
    add(hash, data.batch(data::Split::validation, read > 1 ? i * (all - 1) / (read - 1) : 0,
                         config.batch));
  return hash;
}

}  // namespace heddle::train
