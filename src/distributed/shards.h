// The elements of a list of tensors, one after the other, dealt out to ranks: each owns one range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "distributed/tree.h"
#include "heddle/tensor.h"

namespace heddle::distributed {

// Elements [begin, end) of tensor `tensor`.
struct Slice {
  std::size_t tensor = 0;
  std::int64_t begin = 0, end = 0;

  std::int64_t count() const { return end - begin; }
  bool operator==(const Slice&) const = default;
};

// Tensors are cut into pieces of so many elements, the last one smaller, and a piece has one owner.
// So sums over pieces are the same for any number of ranks.
inline constexpr std::int64_t kPiece = 1024;

class Shards {
 public:
  Shards(std::vector<std::int64_t> sizes, int ranks);  // elements of each tensor

  int ranks() const { return static_cast<int>(bounds_.size()) - 1; }
  std::int64_t elements() const { return starts_.back(); }
  std::size_t tensors() const { return starts_.size() - 1; }
  std::int64_t start(std::size_t tensor) const { return starts_[tensor]; }
  Range of(int rank) const;
  std::int64_t largest() const;  // elements of the largest shard
  // The parts of tensors that lie in a range of all elements.
  std::vector<Slice> slices(const Range& range) const;

 private:
  std::vector<std::int64_t> starts_;  // of each tensor, and the end
  std::vector<std::int64_t> bounds_;  // of each rank, and the end
};

// The slice as a tensor of one dimension, which shares the storage; the tensor is contiguous.
Tensor slice_of(const Tensor& tensor, const Slice& slice);

}  // namespace heddle::distributed
