// The dense definition: every score in memory.
#include <cmath>

#include "ops/attention/attention.h"
#include "ops/attention/dense.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

Tensor weigh_values(const Tensor& products, const Tensor& v, const AttentionOptions& o,
                    double scale) {
  if (o.dropout > 0)
    fail(ErrorCode::unsupported, "attention", "the dense definition has no dropout", "dropout = 0");
  const Tensor weights = dense_attention::weights(products, o, scale);
  const Tensor mixed = ops::matmul(weights, dense_attention::by_head(v, products.size(1)));
  return ops::contiguous(ops::transpose(mixed, 1, 2));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  return weigh_values(dense_attention::dot_scores(q, k), v, o,
                      o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(q.size(3))));
}

Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& o) {
  return weigh_values(dense_attention::additive_scores(q, k, w), v, o, o.scale != 0 ? o.scale : 1);
}

}  // namespace heddle::ops::reference
