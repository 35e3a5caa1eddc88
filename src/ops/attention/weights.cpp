// Attention maps: the requested rows, recomputed.
#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/tape.h"
#include "ops/attention/attention.h"
#include "ops/attention/dense.h"
#include "ops/attention/mask.h"
#include "ops/copy/copy.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

void check(const char* op, const Tensor& q, const Tensor& k, const AttentionOptions& o,
           const MapRows& rows) {
  check_compute({op, "q", q});
  check_rank({op, "q", q}, 4);
  check_dtype({op, "k", k}, q.dtype());
  check_rank({op, "k", k}, 4);
  check_same_device({op, "k", k}, q);
  const std::int64_t heads = q.size(2), groups = k.size(2);
  check_shape({op, "k", k}, {q.size(0), k.size(1), groups, q.size(3)});
  check_condition(groups > 0 && heads % groups == 0, op, "k",
                  "a number of key heads that divides the " + std::to_string(heads),
                  std::to_string(groups));
  check_condition(rows.head >= 0 && rows.head < heads, op, "head",
                  "0 to " + std::to_string(heads - 1), std::to_string(rows.head));
  check_condition(rows.first >= 0 && rows.count >= 0 && rows.first <= q.size(1) - rows.count, op,
                  "rows", "queries 0 to " + std::to_string(q.size(1)),
                  std::to_string(rows.first) + " to " + std::to_string(rows.first + rows.count));
  check_options(op, o, q, {q.size(0), q.size(1), k.size(1)});
}

Tensor head_of(const Tensor& x, std::int64_t head) { return slice(x, 2, head, head + 1); }

// The rows of a mask of pairs, [B or 1, H or 1, Tq, Tk], that one head's queries look at.
Tensor pairs_of(const Tensor& mask, const MapRows& rows) {
  if (!mask.defined()) return mask;
  const std::int64_t head = mask.size(1) == 1 ? 0 : rows.head;
  return slice(slice(mask.detach(), 1, head, head + 1), 2, rows.first, rows.first + rows.count);
}

// The call that has these rows as its only queries, and this head as its only one. A bias by
// distance has its entry for key j and query i at j - i + Tq - 1; with queries first .. first +
// count it is at j - (i - first) + count - 1.
AttentionOptions narrowed(const AttentionOptions& o, const MapRows& rows, std::int64_t queries,
                          std::int64_t keys) {
  AttentionOptions out = o;
  out.keys = {};  // these are of other queries
  out.mask.first_query += rows.first;
  if (o.mask.query_documents.defined())
    out.mask.query_documents =
        slice(o.mask.query_documents, 1, rows.first, rows.first + rows.count);
  if (o.relative_bias.defined()) {
    const std::int64_t begin = queries - rows.first - rows.count;
    const std::int64_t length = std::max<std::int64_t>(rows.count + keys - 1, 0);
    const Tensor row = slice(o.relative_bias.detach(), 0, rows.head, rows.head + 1);
    out.relative_bias = slice(row, 1, begin, begin + length);
  }
  out.additive_mask = pairs_of(o.additive_mask, rows);
  out.mask.allowed = pairs_of(o.mask.allowed, rows);
  if (o.sinks.defined()) out.sinks = slice(o.sinks.detach(), 0, rows.head, rows.head + 1);
  return out;
}

struct Sides {
  Tensor q, k;  // [B, count, 1, D], [B, Tk, 1, D], in the type sums are made in
};

Sides sides(const Tensor& q, const Tensor& k, std::int64_t first_row, const MapRows& rows) {
  const DType type = parameter_dtype(q);
  const std::int64_t group = q.size(2) / k.size(2);
  return {cast(slice(head_of(q.detach(), rows.head), 1, rows.first, rows.first + rows.count), type),
          cast(dense_attention::in_order(head_of(k.detach(), rows.head / group), first_row), type)};
}

void check_sums(const char* op, const Tensor& q, const Tensor& row_sums) {
  if (row_sums.defined())
    check_parameter({op, "row_sums", row_sums}, q, {q.size(0), q.size(2), q.size(1)});
}

// Products of the rows' own call to weights, [B, 1, count, Tk].
Tensor weigh(const Tensor& products, const AttentionOptions& narrow, double scale,
             const MapRows& rows, const Tensor& row_sums) {
  if (!row_sums.defined()) return dense_attention::weights(products, narrow, scale);
  const Tensor of_head = slice(row_sums.detach(), 1, rows.head, rows.head + 1);
  return dense_attention::weights_by_sums(products, narrow, scale,
                                          slice(of_head, 2, rows.first, rows.first + rows.count));
}

Tensor without_head(const Tensor& weights) {  // [B, 1, count, Tk]
  return reshape(weights, {weights.size(0), weights.size(2), weights.size(3)});
}

// One head's rows of a call.
struct MapCall {
  const char* op;
  const Tensor& q;
  const Tensor& k;
  const Tensor* w;  // weight of the additive score; null: dot product
  const AttentionOptions& options;
  const MapRows& rows;

  void check_all() const {
    check(op, q, k, options, rows);
    if (w != nullptr) check_parameter({op, "w", *w}, q, {q.size(2), q.size(3)});
  }
  // How the rows are computed: products, options of their own, and the scale.
  template <class F>
  Tensor map(F f) const {
    const NoGrad no_grad;
    if (q.device().is_meta())
      return Tensor::empty({q.size(0), rows.count, k.size(1)}, parameter_dtype(q), q.device());
    return without_head(f(products(), narrowed(options, rows, q.size(1), k.size(1)), scale()));
  }

 private:
  double scale() const {
    if (options.scale != 0) return options.scale;
    return w != nullptr ? 1 : 1 / std::sqrt(std::max(1.0, static_cast<double>(q.size(3))));
  }
  Tensor products() const {  // [B, 1, count, Tk]
    const Sides s = sides(q, k, options.first_row, rows);
    if (w == nullptr) return dense_attention::dot_scores(s.q, s.k);
    return dense_attention::additive_scores(s.q, s.k,
                                            slice(w->detach(), 0, rows.head, rows.head + 1));
  }
};

Tensor weights_of(const MapCall& call, const Tensor& row_sums) {
  call.check_all();
  check_sums(call.op, call.q, row_sums);
  return call.map([&](const Tensor& products, const AttentionOptions& narrow, double scale) {
    return weigh(products, narrow, scale, call.rows, row_sums);
  });
}

Tensor scores_of(const MapCall& call) {
  call.check_all();
  return call.map(dense_attention::masked_scores);
}

// Whether they are to be widened.
bool both_halves(const char* op, const Tensor& q, const Tensor& k) {
  if (is_half(q)) check_dtype({op, "k", k}, DType::f16);
  return is_half(q);
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& o,
                         const MapRows& rows, const Tensor& row_sums) {
  if (both_halves("attention_weights", q, k))
    return attention_weights(wide(q), wide(k), o, rows, row_sums);
  return weights_of({"attention_weights", q, k, nullptr, o, rows}, row_sums);
}

Tensor additive_attention_weights(const Tensor& q, const Tensor& k, const Tensor& w,
                                  const AttentionOptions& o, const MapRows& rows,
                                  const Tensor& row_sums) {
  if (both_halves("additive_attention_weights", q, k))
    return additive_attention_weights(wide(q), wide(k), w, o, rows, row_sums);
  return weights_of({"additive_attention_weights", q, k, &w, o, rows}, row_sums);
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& o,
                        const MapRows& rows) {
  if (both_halves("attention_scores", q, k)) return attention_scores(wide(q), wide(k), o, rows);
  return scores_of({"attention_scores", q, k, nullptr, o, rows});
}

Tensor additive_attention_scores(const Tensor& q, const Tensor& k, const Tensor& w,
                                 const AttentionOptions& o, const MapRows& rows) {
  if (both_halves("additive_attention_scores", q, k))
    return additive_attention_scores(wide(q), wide(k), w, o, rows);
  return scores_of({"additive_attention_scores", q, k, &w, o, rows});
}

}  // namespace heddle::ops
