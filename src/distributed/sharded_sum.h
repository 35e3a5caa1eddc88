// The sum of the gradients of parts, of which every rank keeps its shard alone: what a part has
// completed goes to its owners while the rest of it is computed, and is forgotten here.
//
// Parts are dealt out in rounds, neighbours to neighbouring ranks: what an owner gets in a round
// the tree (tree.h) adds at once, or nearly so, and it holds a few nodes of the size of its shard.
// Each part's gradients travel by themselves: a rank with k parts sends about k times what it sends
// when it adds its parts first (reduce.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/shards.h"
#include "distributed/tree.h"
#include "heddle/tensor.h"

namespace heddle::distributed {

class ShardedSum {
 public:
  // Of tensors in f32, dealt out by buckets in the order in which they are summed; both outlive it.
  ShardedSum(Communicator& group, std::span<const Shards> buckets, std::int64_t parts,
             Device device);

  std::int64_t rounds() const;
  // What this rank computes in a round; nothing where there are no more parts.
  std::optional<std::int64_t> part_in(std::int64_t round) const;

  // Tensor number `tensor` of this rank's part of the round: contiguous, and given up. All ranks
  // sum a bucket when they have been given all of it and all buckets before; one is under way while
  // this rank goes on.
  void give(std::size_t tensor, Tensor value);
  // Those that were not given are zeros. Afterwards the next round begins. Ranks without a part
  // come here at once.
  void end_round();

  // After the last round: this rank's shards of the buckets, a tensor for each slice.
  std::vector<Tensor> take();

 private:
  // A node's shard: in the buffer in which it came, or in memory of its own.
  struct Term {
    Tensor value;
    bool kept = false;
  };
  // The bucket that is under way: the last one of a round while the next round begins.
  struct Flight {
    std::size_t bucket = 0;
    std::int64_t first = 0, parts = 0;  // of the round
    Tensor out, in;
  };

  std::int64_t senders() const;  // ranks that have a part in this round
  bool sends() const { return group_.rank() < senders(); }
  void start_complete();
  bool complete(std::size_t bucket) const;
  void start(std::size_t bucket);
  Tensor packed(std::size_t bucket);
  void land();
  void add_up(const Flight& flight);

  Communicator& group_;
  std::span<const Shards> buckets_;
  std::int64_t parts_;
  Device device_;
  std::vector<std::vector<Slice>> slices_;  // of each bucket
  std::vector<TreeSum<Term>> sums_;         // of each bucket, over this rank's shard
  std::int64_t round_ = 0;
  std::vector<Tensor> values_;  // that were given in this round and not yet sent
  std::vector<bool> given_;
  std::size_t next_ = 0;  // bucket
  std::optional<Flight> flight_;
};

}  // namespace heddle::distributed
