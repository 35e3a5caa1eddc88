// Masks as intervals: whatever is combined, a query sees the keys of one interval. That is what
// lets one kernel run every mask, and what makes a window cost O(N · window).
#pragma once

#include "ops/attention/attention.h"

namespace heddle::ops {

struct AttentionSizes {
  std::int64_t batch = 0, queries = 0, keys = 0;
};

// Throws Error when the mask's parts do not fit the sizes or make no sense together.
void validate_mask(const char* op, const AttentionMask& mask, const AttentionSizes& sizes,
                   Device device);

// The same for all options of a call whose queries, of any head, are q.
void check_options(const char* op, const AttentionOptions& options, const Tensor& q,
                   const AttentionSizes& sizes);

// [2, B, Tq] i32: first visible key, and one past the last, of every query; equal: none. On the
// meta device the tensor is there and its values are not.
Tensor visible_keys(const AttentionMask& mask, const AttentionSizes& sizes, Device device);

// [B] i32: one past the last key that any query sees, of such intervals. What lies behind it may be
// anything, as memory that nobody has written yet: it is not read.
Tensor ends_of_keys(const Tensor& intervals);

// How many (query, key) pairs of all batches are visible; on the meta device lengths and documents
// count as absent.
double visible_pairs(const AttentionMask& mask, const AttentionSizes& sizes,
                     const Tensor& intervals);

}  // namespace heddle::ops
