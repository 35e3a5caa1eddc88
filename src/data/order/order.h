// The order in which an epoch sees its examples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::data {

std::int64_t batches_of(std::int64_t examples, std::int64_t batch);  // the last may be smaller

// Every example once, in batches. Examples are shuffled, cut into pools of some batches, sorted by
// length within a pool so that a batch has little padding, and the batches are shuffled again.
class EpochOrder {
 public:
  // `lengths` sorts the examples: any numbers. Where all are the same nothing is sorted.
  EpochOrder(std::span<const std::uint64_t> lengths, std::int64_t batch, std::uint64_t seed,
             std::int64_t epoch);

  std::int64_t batches() const { return static_cast<std::int64_t>(batch_order_.size()); }
  std::span<const std::int64_t> batch(std::int64_t index) const;

 private:
  std::int64_t batch_;
  std::vector<std::int64_t> examples_;
  std::vector<std::int64_t> batch_order_;
};

// Batches at most this many at a time are sorted together.
inline constexpr std::int64_t kPoolBatches = 64;

}  // namespace heddle::data
