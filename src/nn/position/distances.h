// Which distances a block of queries and keys has: what T5's and ALiBi's biases are functions of.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::nn {

// Query i is at position first_query + i, key j at position j. A bias by distance is a vector whose
// entry n belongs to all pairs with j - i = n - (queries - 1), as ops::attention takes it.
struct Distances {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t first_query = 0;

  std::int64_t count() const { return std::max<std::int64_t>(queries + keys - 1, 0); }

  // Position of the key minus position of the query.
  std::int64_t at(std::int64_t n) const { return n - (queries - 1) - first_query; }
};

}  // namespace heddle::nn
