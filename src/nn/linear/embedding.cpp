#include "nn/linear/embedding.h"

#include <utility>

#include "nn/require.h"
#include "ops/embedding/embedding.h"

namespace heddle::nn {

Embedding::Embedding(const EmbeddingConfig& config, const Scope& scope) {
  const auto positive = [](std::int64_t size, const char* key) {
    require(size > 0, "embedding", key, "1 or more", static_cast<double>(size));
  };
  positive(config.rows, "rows");
  positive(config.width, "width");
  table_ = scope.table("weight", {config.rows, config.width});
}

Embedding::Embedding(Tensor table) : table_(std::move(table)) {}

Tensor Embedding::forward(const Tensor& ids, DType precision) const {
  return ops::embedding(table_, ids, precision);
}

}  // namespace heddle::nn
