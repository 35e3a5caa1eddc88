// The best tokens of each row of a matrix of scores, with their log-probabilities.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::generate {

struct ScoredToken {
  std::int32_t token = 0;
  double log_probability = 0;
};

// Tokens that may come. The probabilities of the others stay what they are.
struct Possible {
  std::int64_t known = 0;                    // the first so many; 0: all
  std::span<const std::int32_t> never = {};  // but for these
};

// For row i of the logits [R, V] its counts[i] best tokens, the best first, of equal ones the lower
// id; fewer where fewer are possible at all. Throws Error when a row holds NaN or +inf, or nothing
// but -inf.
std::vector<std::vector<ScoredToken>> best_tokens(const Tensor& logits,
                                                  std::span<const std::int64_t> counts,
                                                  const Possible& possible = {});

}  // namespace heddle::generate
