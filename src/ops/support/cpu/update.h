// Shared by optimisers on the CPU: the update of many weights as one piece of work, followed by
// their packed forms.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/threads.h"
#include "heddle/tensor.h"
#include "ops/support/cpu/packed_weight.h"
#include "ops/support/cpu/pieces.h"

namespace heddle::cpu {

// Elements of a piece of work: 128 KiB of AdamW's four arrays.
inline constexpr std::int64_t kUpdateElements = 8192;

// The number that multiplies gradients.
inline double scale_of(const Tensor& grad_scale) {
  return grad_scale.defined() ? grad_scale.item() : 1;
}

// Calls update(i, begin, end) for pieces of every weight. The thread that wrote the last piece of a
// weight, which has it in its cache, packs it again where it was packed.
template <class Update>
void update_weights(std::span<const Tensor> weights, const Update& update) {
  std::vector<std::int64_t> counts;
  counts.reserve(weights.size());
  for (const Tensor& w : weights) counts.push_back(w.elements());
  std::vector<std::atomic<std::int64_t>> left(weights.size());  // elements to be updated
  for (std::size_t i = 0; i < counts.size(); ++i) left[i] = counts[i];
  PackedRefresh packed(weights);
  const Pieces pieces(counts, kUpdateElements);
  parallel_chunks(pieces.chunks(), [&](std::int64_t chunk) {
    for (const Piece& piece : pieces.of(chunk)) {
      update(piece.array, piece.begin, piece.end);
      const std::int64_t done = piece.end - piece.begin;
      if (left[piece.array].fetch_sub(done, std::memory_order_acq_rel) == done)
        packed.pack(piece.array);
    }
  });
}

}  // namespace heddle::cpu
