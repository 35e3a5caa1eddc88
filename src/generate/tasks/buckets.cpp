#include "generate/tasks/buckets.h"

#include <algorithm>

namespace heddle::generate {

std::vector<std::vector<std::size_t>> buckets(std::span<const std::size_t> lengths,
                                              const BucketLimits& limits) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  std::vector<std::vector<std::size_t>> all;
  std::size_t room = 0;  // sequences that the last batch can still take
  for (const std::size_t i : order) {
    if (room == 0) {
      // The first is the longest: all others are padded to its length.
      const auto by_tokens = static_cast<std::size_t>(limits.tokens) / lengths[i];
      room = std::clamp<std::size_t>(by_tokens, 1, static_cast<std::size_t>(limits.sequences));
      all.emplace_back();
    }
    all.back().push_back(i);
    --room;
  }
  return all;
}

}  // namespace heddle::generate
