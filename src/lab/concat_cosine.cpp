// concat-cosine: can wᵀ[k; q] say how alike a key and a query are?
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lab/cosine_pairs.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/topics.h"
#include "ops/view/view.h"

namespace heddle::lab::concat_cosine {

namespace {

constexpr std::int64_t kWidth = 8, kPairs = 4000, kTokens = 8;

std::vector<std::vector<double>> with_constant(const Tensor& x) {
  auto rows = rows_of(x);
  for (auto& row : rows) row.push_back(1);  // even with a constant term
  return rows;
}

// k_i·q_i and a constant: what the cosine is made of, but for the lengths.
std::vector<std::vector<double>> products(const Tensor& x) {
  std::vector<std::vector<double>> out;
  for (const auto& row : rows_of(x)) {
    out.push_back({1});
    for (std::size_t i = 0; i < kWidth; ++i) out.back().push_back(row[i] * row[i + kWidth]);
  }
  return out;
}

struct Fit {
  double r2 = 0;    // on pairs that the fit has not seen
  double mean = 0;  // of what is fitted
};

using Features = std::vector<std::vector<double>> (*)(const Tensor&);

Fit linear_fit(const Findings& f, bool angle, Features features) {
  CosinePairs seen = cosine_pairs(kPairs, kWidth, 71), fresh = cosine_pairs(kPairs, kWidth, 72);
  if (angle && !f.fault("cosine-for-angle"))
    for (auto* list : {&seen.cosine, &fresh.cosine})
      for (double& c : *list) c = std::acos(std::clamp(c, -1.0, 1.0));
  if (f.fault("shuffled-answers"))
    std::rotate(seen.cosine.begin(), seen.cosine.begin() + 1, seen.cosine.end());
  const std::vector<double> w = least_squares(features(seen.x), seen.cosine);
  std::vector<double> predicted;
  for (const auto& row : features(fresh.x)) {
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * row[i];
    predicted.push_back(sum);
  }
  return {r_squared(fresh.cosine, predicted),
          std::accumulate(fresh.cosine.begin(), fresh.cosine.end(), 0.0) / kPairs};
}

// The weights of a head over the tokens: [queries][keys].
std::vector<std::vector<double>> map_of(nn::Score score, const Tensor& x) {
  nn::AttentionConfig config{.width = kWidth, .score = score};
  const nn::Attention layer = attention_layer(config, 7);
  return rows_of(ops::reshape(layer.weights(x, {.head = 0, .first = 0, .count = kTokens}),
                              {kTokens, kTokens}));
}

// How much the weight of a key differs between two queries, at most.
double spread_over_queries(const Findings& f, const std::vector<std::vector<double>>& map) {
  const bool one_query = f.fault("one-query");
  double spread = 0;
  for (std::size_t key = 0; key < map.front().size(); ++key)
    for (const auto& row : map)
      spread = std::max(spread, std::abs((one_query ? map.front() : row)[key] - map.front()[key]));
  return spread;
}

void run(Findings& f) {
  const Fit cosine = linear_fit(f, false, with_constant);
  const Fit angle = linear_fit(f, true, with_constant);
  const double r2_cosine = cosine.r2, r2_angle = angle.r2;
  const Tensor x = normal({1, kTokens, kWidth}, 73, 2);
  const auto concat = map_of(f.fault("other-score") ? nn::Score::scaled_dot : nn::Score::concat, x);
  const double spread = spread_over_queries(f, concat);
  const double dot_spread = spread_over_queries(f, map_of(nn::Score::scaled_dot, x));

  f.number("r2_cosine", r2_cosine,
           {"R² of the best wᵀ[k; q] + b for cos θ, fresh pairs",
            "最优 wᵀ[k; q] + b 拟合 cos θ 的 R²（新样本）"});
  f.number("r2_angle", r2_angle, {"the same for θ", "同上，拟合 θ"});
  f.number("concat_spread", spread,
           {"concat: difference of a key's weight between queries",
            "连接注意力：同一键的权重在不同查询间的差"});
  f.number("dot_spread", dot_spread, {"scaled dot product: the same", "缩放点积注意力：同上"});
  report::HeatMap map;
  map.x_label = f.say({"key", "键"});
  map.y_label = f.say({"query", "查询"});
  map.values = concat;
  f.figure(map, {"Weights of Heddle's concat attention: every query sees the same.",
                 "Heddle 连接注意力的权重：所有查询看到的完全一样。"});

  f.control({"R² for cos θ from the products k_i·q_i", "用乘积 k_i·q_i 拟合 cos θ 的 R²"},
            linear_fit(f, false, products).r2, Relation::greater, 0.8);
  f.control({"mean of θ: distance from a right angle", "θ 的均值与直角之差"},
            std::abs(angle.mean - std::numbers::pi / 2), Relation::less, 0.03);
  f.control({"mean of cos θ: distance from 0", "cos θ 的均值与 0 之差"}, std::abs(cosine.mean),
            Relation::less, 0.03);
  f.control({"scaled dot product: weights differ between queries by", "缩放点积：不同查询的权重差"},
            dot_spread, Relation::greater, 0.01);
  const bool no_cosine =
      f.check({"|R²| for cos θ", "拟合 cos θ 的 |R²|"}, std::abs(r2_cosine), Relation::less, 0.02);
  const bool no_angle =
      f.check({"|R²| for θ", "拟合 θ 的 |R²|"}, std::abs(r2_angle), Relation::less, 0.02);
  const bool query_gone =
      f.check({"concat: weights differ between queries by", "连接注意力：不同查询的权重差"}, spread,
              Relation::less, 1e-12);
  f.verdict(no_cosine && no_angle && query_gone ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "concat-cosine",
      .topic = topics::scores,
      .title = {"Concat attention and the angle", "连接注意力与夹角"},
      .claim = {"No w makes the score wᵀ[k; q] approximate the angle between key and query, or its "
                "cosine.",
                "不存在 w 使得分 wᵀ[k; q] 近似键与查询的夹角 θ 或 cos θ。"},
      .source = {"Document 000, 2.1(b): both answers.", "文档 000 的 2.1(b)：两个解答。"},
      .method = {"Least squares over 4000 random pairs of width 8, judged on 4000 others. And the "
                 "weights of Heddle's concat attention: how much they depend on the query.",
                 "在 4000 对 8 维随机向量上做最小二乘，并在另外 4000 对上评估。"
                 "再看 Heddle 连接注意力的权重依赖查询的程度。"},
      .threshold = {"|R²| below 0.02: a fit of 17 numbers to 4000 pairs reaches about 17/4000 by "
                    "chance. Weights of two queries are the same below 1e-12.",
                    "|R²| 小于 0.02：用 17 个参数拟合 4000 对样本，偶然即可达到约 17/4000。"
                    "两个查询的权重差小于 1e-12 视为相同。"},
      .expected = Verdict::holds,
      .because =
          {"cos θ changes its sign when k alone or q alone does, but a part that knows only one "
           "of them cannot follow the other: on average it has nothing in common with cos θ. "
           "It is worse than the documents say: the query's part is the same for all keys and "
           "cancels in the softmax, so concat attention does not look at the query at all.",
           "k 或 q 单独反向时 cos θ 都会变号，而只含其中一个的部分无法随另一个变化，"
           "平均下来与 cos θ 毫无相关。事实比文档说的更糟：查询那部分对所有键都相同，"
           "在 softmax 中被消去，连接注意力根本不看查询。"},
      .faults = {{"shuffled-answers",
                  {"the fit gets the cosines of other pairs", "拟合时用了别的向量对的余弦"}},
                 {"cosine-for-angle",
                  {"the cosine is fitted where the angle is meant", "该拟合夹角处拟合了余弦"}},
                 {"one-query",
                  {"the first query is compared with itself", "拿第一个查询与它自己比较"}},
                 {"other-score",
                  {"the weights are those of scaled dot products", "权重来自缩放点积注意力"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::concat_cosine
