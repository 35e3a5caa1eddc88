// A table of vectors that are looked up by number: tokens.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "nn/parameters.h"

namespace heddle::nn {

struct EmbeddingConfig {
  std::int64_t rows = 0;   // V
  std::int64_t width = 0;  // C
};

class Embedding {
 public:
  // "weight" [V, C]. Throws Error unless both sizes are positive.
  Embedding(const EmbeddingConfig& config, const Scope& scope);
  // Shares a table that is there already.
  explicit Embedding(Tensor table);

  // ids: i32 or i64, 0 <= id < V. [...] -> [..., C] in the type `precision`.
  Tensor forward(const Tensor& ids, DType precision = DType::f32) const;

  const Tensor& table() const { return table_; }

 private:
  Tensor table_;
};

}  // namespace heddle::nn
