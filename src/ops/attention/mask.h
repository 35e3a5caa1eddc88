// Masks as intervals: whatever is combined, a query sees the keys of one interval. That is what
// lets one kernel run every mask, and what makes a window cost O(N · window).
#pragma once

#include "ops/attention/attention.h"

namespace heddle::ops {

// Throws Error when the mask's parts do not fit the sizes or make no sense together.
void validate_mask(const char* op, const AttentionMask& mask, const AttentionSizes& sizes,
                   Device device);

// The same for all options of a call whose queries, of any head, are q.
void check_options(const char* op, const AttentionOptions& options, const Tensor& q,
                   const AttentionSizes& sizes);

// prepared_keys() of a mask that was checked.
VisibleKeys visible_keys(const AttentionMask& mask, const AttentionSizes& sizes, Device device);

}  // namespace heddle::ops
