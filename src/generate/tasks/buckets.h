// Sequences of similar length side by side, so that batches have little padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::generate {

struct BucketLimits {
  std::int64_t sequences = 64;  // of a batch
  std::int64_t tokens = 8192;   // of a batch, padding included; a longer sequence is alone
};

// The places of all sequences but empty ones, cut into batches, the longest sequences first (so
// that the most memory is needed at once, not at the end).
std::vector<std::vector<std::size_t>> buckets(std::span<const std::size_t> lengths,
                                              const BucketLimits& limits);

}  // namespace heddle::generate
