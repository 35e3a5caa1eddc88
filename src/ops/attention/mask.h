// Masks as intervals: whatever is combined, a query sees the keys of one interval. That is what
// lets one kernel run every mask, and what makes a window cost O(N · window).
#pragma once

#include "ops/attention/attention.h"

namespace heddle::ops {

struct KeyInterval {
  std::int64_t first, last;  // one past it
};

// The keys that queries see by their place alone, whatever the sequence.
struct QueryWindow {
  std::int64_t keys = 0, first_query = 0;
  bool causal = false;
  std::int64_t look_back = kEverything, look_ahead = kEverything;

  static constexpr std::int64_t kEverything = std::int64_t{1} << 40;

  constexpr KeyInterval of(std::int64_t query) const { return of(query + first_query, 0); }

  // prefix: keys that are seen from everywhere.
  constexpr KeyInterval of(std::int64_t position, std::int64_t prefix) const {
    std::int64_t first = 0, last = keys;
    if (causal) {
      const std::int64_t behind = position + 1 > prefix ? position + 1 : prefix;
      last = behind < last ? behind : last;
    }
    if (look_back != kEverything) {
      const std::int64_t from = position - look_back < keys ? position - look_back : keys;
      first = from > first ? from : first;
    }
    if (look_ahead != kEverything) {
      const std::int64_t to = position + (look_ahead < keys ? look_ahead : keys) + 1;
      last = to < last ? to : last;
    }
    return {first, last > first ? last : first};
  }
};

// Throws Error when the mask's parts do not fit the sizes or make no sense together.
void validate_mask(const char* op, const AttentionMask& mask, const AttentionSizes& sizes,
                   Device device);

// The same for all options of a call whose queries, of any head, are q.
void check_options(const char* op, const AttentionOptions& options, const Tensor& q,
                   const AttentionSizes& sizes);

// prepared_keys() of a mask that was checked.
VisibleKeys visible_keys(const AttentionMask& mask, const AttentionSizes& sizes, Device device);

}  // namespace heddle::ops
