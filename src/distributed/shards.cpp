#include "distributed/shards.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"

namespace heddle::distributed {

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

}  // namespace

Shards::Shards(const std::vector<std::int64_t>& sizes, int ranks)
    : Shards(sizes, ranks, {0, sum_of(sizes)}) {}

Shards::Shards(const std::vector<std::int64_t>& sizes, int ranks, const Range& dealt) {
  starts_.push_back(0);
  first_pieces_.push_back(0);
  for (const std::int64_t size : sizes) {
    starts_.push_back(starts_.back() + size);
    first_pieces_.push_back(first_pieces_.back() + ceil_div(size, kPiece));
  }
  bounds_.push_back(dealt.begin);
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    // The last start of a piece that is not behind the fair share.
    const std::int64_t fair = dealt.begin + dealt.count() * rank / ranks;
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), fair);
    const std::int64_t start = after == starts_.begin() ? 0 : *(after - 1);
    bounds_.push_back(std::max(bounds_.back(), start + (fair - start) / kPiece * kPiece));
  }
  bounds_.push_back(dealt.end);
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

std::vector<Shards> buckets_of(const std::vector<std::int64_t>& sizes, int ranks,
                               std::int64_t elements) {
  std::vector<Shards> buckets;
  std::int64_t begin = sum_of(sizes), end = begin;  // of the tensor, of the bucket
  const auto close = [&](std::int64_t at) {
    buckets.emplace_back(sizes, ranks, Range{at, end});
    end = at;
  };
  for (std::size_t i = sizes.size(); i-- > 0;) {
    begin -= sizes[i];
    while (end - begin > 2 * elements)  // a large tensor, cut at pieces
      close(begin + (end - begin - elements) / kPiece * kPiece);
    if (end - begin >= elements) close(begin);
  }
  if (end > 0 || buckets.empty()) close(0);
  return buckets;
}

std::int64_t usual_bucket(const std::vector<std::int64_t>& sizes, int ranks) {
  constexpr std::int64_t kBuckets = 16, kPiecesOfRank = 8, kMost = std::int64_t{1} << 19;
  return std::clamp(sum_of(sizes) / kBuckets, std::min(kPiecesOfRank * kPiece * ranks, kMost),
                    kMost);
}

Tensor slice_of(const Tensor& tensor, const Slice& slice) {
  const Tensor flat = views::reshape(tensor.detach(), {tensor.elements()});
  return views::slice(flat, 0, slice.begin, slice.end);
}

}  // namespace heddle::distributed
