#include "distributed/shards.h"

#include <algorithm>
#include <utility>

namespace heddle::distributed {

Shards::Shards(std::vector<std::int64_t> sizes, int ranks) {
  starts_.push_back(0);
  for (const std::int64_t size : sizes) starts_.push_back(starts_.back() + size);
  bounds_.push_back(0);
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    // The last start of a piece that is not behind the fair share.
    const std::int64_t fair = elements() * rank / ranks;
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), fair);
    const std::int64_t start = after == starts_.begin() ? 0 : *(after - 1);
    bounds_.push_back(std::max(bounds_.back(), start + (fair - start) / kPiece * kPiece));
  }
  bounds_.push_back(elements());
}

Range Shards::of(int rank) const {
  const auto i = static_cast<std::size_t>(rank);
  return {bounds_[i], bounds_[i + 1]};
}

std::int64_t Shards::largest() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, of(rank).count());
  return most;
}

std::vector<Slice> Shards::slices(const Range& range) const {
  std::vector<Slice> all;
  if (range.count() <= 0) return all;
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), range.begin);
  for (auto i = static_cast<std::size_t>(after - starts_.begin()) - 1;
       i < tensors() && starts_[i] < range.end; ++i) {
    const std::int64_t begin = std::max(range.begin, starts_[i]) - starts_[i],
                       end = std::min(range.end, starts_[i + 1]) - starts_[i];
    if (begin < end) all.push_back({i, begin, end});
  }
  return all;
}

Tensor slice_of(const Tensor& tensor, const Slice& slice) {
  const Tensor flat = views::reshape(tensor.detach(), {tensor.elements()});
  return views::slice(flat, 0, slice.begin, slice.end);
}

}  // namespace heddle::distributed
