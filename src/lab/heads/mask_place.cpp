// mask-place: does the causal mask belong on the scores, or on K and V?
#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/attention/attention.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::mask_place {

namespace {

constexpr std::int64_t kTokens = 8, kWidth = 6;

// q, k, v: [T, D] of one head.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const auto batched = [](const Tensor& t) {
    return ops::reshape(t, {1, t.size(0), 1, t.size(1)});
  };
  ops::AttentionOptions options;
  options.mask.causal = causal;
  return ops::reshape(ops::attention(batched(q), batched(k), batched(v), options),
                      {q.size(0), v.size(1)});
}

Tensor row(const Tensor& t, std::int64_t i) { return ops::slice(t, 0, i, i + 1); }

Tensor rows_from_zeroed(const Tensor& t, std::int64_t first) {
  Tensor out = ops::clone(t);
  double* data = out.mutable_data<double>();
  for (std::int64_t i = first * t.size(1); i < t.elements(); ++i) data[i] = 0;
  return out;
}

struct Hidden {
  double off = 0;            // largest difference from the mask on the scores
  std::vector<double> lost;  // per query: weight that goes to hidden keys
};

// For query i the rows of K and V behind i are set to zero: a zero key still scores 0, not −∞.
Hidden with_zeroed_rows(const Findings& f, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& right) {
  const std::int64_t later = f.fault("zeroed-one-later") ? 1 : 0;
  Hidden out;
  const Tensor ones = Tensor::full({kTokens, 1}, 1, DType::f64);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    const Tensor keys = rows_from_zeroed(k, std::min(i + 1 + later, kTokens));
    const Tensor y = attend(row(q, i), keys, rows_from_zeroed(v, i + 1), false);
    out.off = std::max(out.off, largest_difference(y, row(right, i)));
    const Tensor seen = attend(row(q, i), keys, rows_from_zeroed(ones, i + 1), false);
    out.lost.push_back(1 - seen.item());
  }
  return out;
}

// Rows behind i are taken away: what generation with a cache does.
double with_removed_rows(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& right) {
  double off = 0;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    const Tensor y =
        attend(row(q, i), ops::slice(k, 0, 0, i + 1), ops::slice(v, 0, 0, i + 1), false);
    off = std::max(off, largest_difference(y, row(right, i)));
  }
  return off;
}

// The weight of key 0 for a query when all other keys are zeros: e^s / (e^s + T − 1).
double weight_of_first(const Tensor& q, const Tensor& k, std::int64_t query) {
  double s = 0;
  for (std::size_t i = 0; i < kWidth; ++i)
    s += rows_of(q)[static_cast<std::size_t>(query)][i] * rows_of(k)[0][i];
  s /= std::sqrt(double{kWidth});
  return std::exp(s) / (std::exp(s) + kTokens - 1);
}

void run(Findings& f) {
  const Tensor q = normal({kTokens, kWidth}, 61), k = normal({kTokens, kWidth}, 62),
               v = normal({kTokens, kWidth}, 63);
  const Tensor right = attend(q, k, v, !f.fault("mask-left-out"));
  const Hidden zeroed = with_zeroed_rows(f, q, k, v, right);
  const double removed = with_removed_rows(q, k, v, right);
  // One K and V for all queries: token 0 may see only itself, so all other rows must be hidden, and
  // then they are hidden from the last token as well.
  const Tensor hidden_once = row(attend(q, rows_from_zeroed(k, 1), rows_from_zeroed(v, 1), false),
                                 f.fault("another-query") ? kTokens - 2 : kTokens - 1);
  const double shared = largest_difference(hidden_once, row(right, kTokens - 1));
  const double shared_off_formula =
      largest_difference(hidden_once, ops::scale(row(v, 0), weight_of_first(q, k, kTokens - 1)));

  f.number("zeroed_off", zeroed.off, tr("rows set to zero for each query − mask on the scores"));
  f.number("lost_first", zeroed.lost.front(),
           tr("weight that the first query gives to hidden keys"));
  f.number("shared_off", shared, tr("one K and V with hidden rows for all: last token's error"));
  f.number("removed_off", removed, tr("rows removed for each query − mask on the scores"));
  report::Bars bars;
  bars.y_label = tr("weight given to keys that should be hidden");
  bars.series = {{"", zeroed.lost}};
  for (std::int64_t i = 0; i < kTokens; ++i) bars.groups.push_back(tr("query {}", i));
  f.figure(bars, tr("A key of zeros scores 0, and e⁰ = 1 is a weight like any other. With the mask "
                    "on the scores all these bars are 0."));

  f.control(tr("weight lost by the first query, against (T−1)/(e^s + T−1)"),
            std::abs(zeroed.lost.front() - (1 - weight_of_first(q, k, 0))), Relation::less, 1e-12);
  f.control(tr("hidden once for all, the last output against α·v_0"), shared_off_formula,
            Relation::less, 1e-12);
  f.control(tr("removing the rows, one query at a time, differs by"), removed, Relation::less,
            1e-12);
  const bool same =
      f.check(tr("zeroing rows of K and V differs by"), zeroed.off, Relation::less, 1e-12);
  const bool same_shared =
      f.check(tr("hiding rows once for all differs by"), shared, Relation::less, 1e-12);
  f.verdict(same && same_shared ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "mask-place",
      .topic = topics::heads,
      .title = mark("Where the causal mask belongs"),
      .claim = mark("The causal (triangular) mask is applied to the matrices K and V."),
      .formula = "Y = softmax(frac{Q K^T}{sqrt{d}} + M) V",
      .source = mark("Document 004, masked multi-head self-attention."),
      .method = mark("Heddle's causal attention (mask on the scores) against hiding rows of K and "
                     "V: set to zero for each query, hidden once for all queries, and, as a "
                     "control, removed for each query."),
      .threshold = mark("1e-12: the same function or not; rounding is near 1e-15."),
      .expected = Verdict::refuted,
      .because =
          mark("The mask is N × N, a row per query, and K and V have no such shape. A key of zeros "
               "still scores 0 and takes weight away from the visible ones; and hiding a row once "
               "hides it from later queries too. Only −∞ on the scores does it, or, for one query "
               "at a time, taking the rows away as a cache does."),
      .faults = {{"mask-left-out", mark("the attention to compare with has no mask")},
                 {"zeroed-one-later", mark("rows of zeros begin one token too late")},
                 {"another-query", mark("another query's output is compared")}},
      .run = run,
  };
}

}  // namespace heddle::lab::mask_place
