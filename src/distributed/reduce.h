// Tensors that every rank has, summed, and put together again, in pieces that pass through buffers
// of a fixed size. What a buffer holds changes no bit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/shards.h"
#include "distributed/tree.h"
#include "heddle/tensor.h"

namespace heddle::distributed {

// Elements that the buffers of one exchange hold at most, on each side.
inline constexpr std::int64_t kBufferElements = std::int64_t{1} << 20;

// Nodes of the sum that a rank has, each a list of tensors.
using PartialSums = std::vector<std::pair<Node, std::vector<Tensor>>>;

// `sum` += `term`, tensor by tensor, in the memory of `sum` where nobody else has it.
void add_tensors(std::vector<Tensor>& sum, const std::vector<Tensor>& term);

// The sum of `parts` parts in the order of the tree: this rank's shard of it, one tensor for each
// slice of the shard. `mine` are the nodes of this rank's parts (parts_of()), whose tensors are
// f32, contiguous, and given up: alone, they are the result.
std::vector<Tensor> reduce_scatter(Communicator& group, const Shards& shards, std::int64_t parts,
                                   PartialSums mine);

// Every rank has changed its shard of the tensors; now all have all of it.
void all_gather(Communicator& group, const Shards& shards, std::vector<Tensor>& tensors);

// Rank 0 gets the slices that the ranks have of their shards: `whole` are the tensors there, and
// empty elsewhere. scatter() is the way back.
void gather(Communicator& group, const Shards& shards, const std::vector<Tensor>& slices,
            std::vector<Tensor>& whole);
void scatter(Communicator& group, const Shards& shards, std::vector<Tensor>& slices,
             const std::vector<Tensor>& whole);

// All ranks get the tensors of rank 0.
void broadcast(Communicator& group, std::vector<Tensor>& tensors);

// The sum of the squares of all elements of all shards, of which this rank has the slices: summed
// in f64 piece by piece, and the pieces in their order, for any number of ranks the same, and
// however the tensors are dealt out: `buckets` are all of them together, and the slices in their
// order.
double sum_of_squares(Communicator& group, std::span<const Shards> buckets,
                      const std::vector<Tensor>& slices);

}  // namespace heddle::distributed
