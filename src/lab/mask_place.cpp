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

  f.number(
      "zeroed_off", zeroed.off,
      {"rows set to zero for each query − mask on the scores", "逐查询将行置零 − 在得分上加掩码"});
  f.number("lost_first", zeroed.lost.front(),
           {"weight that the first query gives to hidden keys", "第一个查询分给被隐藏键的权重"});
  f.number("shared_off", shared,
           {"one K and V with hidden rows for all: last token's error",
            "所有查询共用被隐藏的 K、V：末位输出的误差"});
  f.number("removed_off", removed,
           {"rows removed for each query − mask on the scores", "逐查询删去行 − 在得分上加掩码"});
  report::Bars bars;
  bars.y_label = f.say({"weight given to keys that should be hidden", "分给本应隐藏的键的权重"});
  bars.series = {{"", zeroed.lost}};
  for (std::int64_t i = 0; i < kTokens; ++i)
    bars.groups.push_back(f.say({"query ", "查询 "}) + std::to_string(i));
  f.figure(bars,
           {"A key of zeros scores 0, and e⁰ = 1 is a weight like any other. With the mask on "
            "the scores all these bars are 0.",
            "全零的键得分为 0，而 e⁰ = 1 照样占权重。若在得分上加掩码，这些柱子全为 0。"});

  f.control({"weight lost by the first query, against (T−1)/(e^s + T−1)",
             "第一个查询流失的权重与 (T−1)/(e^s + T−1) 之差"},
            std::abs(zeroed.lost.front() - (1 - weight_of_first(q, k, 0))), Relation::less, 1e-12);
  f.control(
      {"hidden once for all, the last output against α·v_0", "统一隐藏时末位输出与 α·v_0 之差"},
      shared_off_formula, Relation::less, 1e-12);
  f.control({"removing the rows, one query at a time, differs by", "逐查询删去行时的差"}, removed,
            Relation::less, 1e-12);
  const bool same = f.check({"zeroing rows of K and V differs by", "将 K、V 的行置零时的差"},
                            zeroed.off, Relation::less, 1e-12);
  const bool same_shared = f.check({"hiding rows once for all differs by", "统一隐藏行时的差"},
                                   shared, Relation::less, 1e-12);
  f.verdict(same && same_shared ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "mask-place",
      .topic = topics::heads,
      .title = {"Where the causal mask belongs", "因果掩码应放在哪里"},
      .claim = {"The causal (triangular) mask is applied to the matrices K and V.",
                "自回归（三角）掩码作用在 K、V 矩阵上。"},
      .source = {"Document 004, masked multi-head self-attention.", "文档 004「多头掩码注意力」。"},
      .method = {"Heddle's causal attention (mask on the scores) against hiding rows of K and V: "
                 "set to zero for each query, hidden once for all queries, and, as a control, "
                 "removed for each query.",
                 "将 Heddle 的因果注意力（掩码加在得分上）与隐藏 K、V 的行比较：逐查询置零、"
                 "对所有查询统一隐藏；对照：逐查询删去这些行。"},
      .threshold = {"1e-12: the same function or not; rounding is near 1e-15.",
                    "1e-12：是否为同一函数；舍入误差约 1e-15。"},
      .expected = Verdict::refuted,
      .because =
          {"The mask is N × N, a row per query, and K and V have no such shape. A key of zeros "
           "still scores 0 and takes weight away from the visible ones; and hiding a row once "
           "hides it from later queries too. Only −∞ on the scores does it, or, for one query "
           "at a time, taking the rows away as a cache does.",
           "掩码是 N × N 的，每个查询一行，而 K、V 没有这样的形状。全零的键得分仍为 0，"
           "会夺走可见键的权重；统一隐藏一行则连后面的查询也看不到它。"
           "只有在得分上加 −∞ 才对，或者像缓存那样逐查询地删去这些行。"},
      .faults = {{"mask-left-out",
                  {"the attention to compare with has no mask", "用来比较的注意力没有掩码"}},
                 {"zeroed-one-later",
                  {"rows of zeros begin one token too late", "置零的行晚了一个词元"}},
                 {"another-query",
                  {"another query's output is compared", "比较的是另一个查询的输出"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::mask_place
