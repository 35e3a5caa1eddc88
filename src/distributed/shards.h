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
  Shards(const std::vector<std::int64_t>& sizes, int ranks);  // elements of each tensor
  // Of a range of all elements alone, whose ends are starts of pieces.
  Shards(const std::vector<std::int64_t>& sizes, int ranks, const Range& dealt);

  int ranks() const { return static_cast<int>(bounds_.size()) - 1; }
  Range all() const { return {bounds_.front(), bounds_.back()}; }  // that are dealt out
  std::int64_t elements() const { return all().count(); }
  std::size_t tensors() const { return starts_.size() - 1; }
  std::int64_t start(std::size_t tensor) const { return starts_[tensor]; }
  Range of(int rank) const;
  std::int64_t largest() const;  // elements of the largest shard
  // The parts of tensors that lie in a range of all elements.
  std::vector<Slice> slices(const Range& range) const;
  std::vector<Slice> slices() const { return slices(all()); }
  // The piece of all tensors with which the slice begins; pieces() are all of them.
  std::int64_t piece_of(const Slice& slice) const {
    return first_pieces_[slice.tensor] + slice.begin / kPiece;
  }
  std::int64_t pieces() const { return first_pieces_.back(); }

 private:
  std::vector<std::int64_t> starts_;        // of each tensor, and the end
  std::vector<std::int64_t> first_pieces_;  // of each tensor, and their number
  std::vector<std::int64_t> bounds_;        // of each rank, and the end
};

// All elements in buckets, from the last to the first, as a backward pass completes gradients: each
// of `elements` to about twice as many, and each dealt out to all ranks, so that all of them send
// and receive while one bucket is summed. Tensors are kept whole where they are not larger.
std::vector<Shards> buckets_of(const std::vector<std::int64_t>& sizes, int ranks,
                               std::int64_t elements);
// A sixteenth of all elements: what is on its way is little beside what is kept. Not so small that
// shares would be uneven or messages short, nor larger than a buffer need be.
std::int64_t usual_bucket(const std::vector<std::int64_t>& sizes, int ranks);

// The slice as a tensor of one dimension, which shares the storage; the tensor is contiguous.
Tensor slice_of(const Tensor& tensor, const Slice& slice);

}  // namespace heddle::distributed
