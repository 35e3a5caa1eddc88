// The dense definition: every score in memory.
#include <cmath>

#include "heddle/tape.h"
#include "ops/attention/attention.h"
#include "ops/attention/dense.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

Tensor weigh_values(const Tensor& products, const Tensor& v, const AttentionOptions& o,
                    double scale) {
  Tensor weights = dense_attention::weights(products, o, scale);
  if (o.dropout > 0)
    weights = ops::mul(weights, dense_attention::kept(o, weights.shape(), weights));
  const Tensor values =
      dense_attention::by_head(dense_attention::in_order(v, o.first_row), products.size(1));
  const Tensor mixed = ops::matmul(weights, values);
  return ops::contiguous(ops::transpose(mixed, 1, 2));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  return weigh_values(dense_attention::dot_scores(q, dense_attention::in_order(k, o.first_row)), v,
                      o, o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(q.size(3))));
}

Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& o) {
  const Tensor keys = dense_attention::in_order(k, o.first_row);
  return weigh_values(dense_attention::additive_scores(q, keys, w), v, o,
                      o.scale != 0 ? o.scale : 1);
}

}  // namespace heddle::ops::reference

namespace heddle::ops::dense_attention {

AttentionWithSums with_sums(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& w,
                            const AttentionOptions& o) {
  const DType exact = parameter_dtype(q);
  const Tensor queries = cast(q, exact), keys = in_order(cast(k, exact), o.first_row);
  const Tensor products =
      w.defined() ? additive_scores(queries, keys, w) : dot_scores(queries, keys);
  AttentionWithSums r{
      cast(reference::weigh_values(products, cast(v, exact), o, o.scale), q.dtype()), {}};
  const NoGrad no_grad;
  r.row_sums = row_sums(products.detach(), o, o.scale);
  return r;
}

}  // namespace heddle::ops::dense_attention
