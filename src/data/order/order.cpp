#include "data/order/order.h"

#include <algorithm>
#include <utility>

#include "data/order/draw.h"

namespace heddle::data {

std::int64_t batches_of(std::int64_t examples, std::int64_t batch) {
  return examples / batch + (examples % batch == 0 ? 0 : 1);
}

namespace {

void sort_pools(std::vector<std::int64_t>& examples, std::span<const std::uint64_t> lengths,
                std::int64_t batch) {
  const auto count = static_cast<std::int64_t>(examples.size());
  // A quarter of the data at most, or small data would be cut into the same batches every epoch.
  const std::int64_t pool =
      batch * std::clamp(batches_of(count, batch) / 4, std::int64_t{1}, kPoolBatches);
  // Equally long ones stay in their random order: the place is part of the key.
  using Key = std::pair<std::uint64_t, std::size_t>;
  std::vector<Key> keys;
  std::vector<std::int64_t> sorted;
  for (std::int64_t begin = 0; begin < count; begin += pool) {
    const auto first = static_cast<std::size_t>(begin);
    const auto last = static_cast<std::size_t>(std::min(begin + pool, count));
    keys.clear();
    sorted.clear();
    for (std::size_t i = first; i < last; ++i)
      keys.emplace_back(lengths[static_cast<std::size_t>(examples[i])], i);
    std::sort(keys.begin(), keys.end());
    for (const Key& key : keys) sorted.push_back(examples[key.second]);
    std::copy(sorted.begin(), sorted.end(), examples.begin() + begin);
  }
}

}  // namespace

EpochOrder::EpochOrder(std::span<const std::uint64_t> lengths, std::int64_t batch,
                       std::uint64_t seed, std::int64_t epoch)
    : batch_(batch),
      examples_(permutation(static_cast<std::int64_t>(lengths.size()),
                            stream_key(seed, epoch, Stream::order))),
      batch_order_(permutation(batches_of(static_cast<std::int64_t>(lengths.size()), batch),
                               stream_key(seed, epoch, Stream::batches))) {
  sort_pools(examples_, lengths, batch);
}

std::span<const std::int64_t> EpochOrder::batch(std::int64_t index) const {
  const std::int64_t begin = batch_order_[static_cast<std::size_t>(index)] * batch_;
  const auto count = static_cast<std::int64_t>(examples_.size());
  return {examples_.data() + begin, static_cast<std::size_t>(std::min(batch_, count - begin))};
}

}  // namespace heddle::data
