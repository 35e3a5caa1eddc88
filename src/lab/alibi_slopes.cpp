// alibi-slopes: ALiBi's slope of each head, and what it makes of the weights.
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/alibi.h"
#include "ops/attention/attention.h"

namespace heddle::lab::alibi_slopes {

namespace {

constexpr std::int64_t kTokens = 64, kHeads = 8;

double by_formula(std::int64_t head, std::int64_t heads) {  // heads count from 1
  return std::pow(2.0, -8.0 * static_cast<double>(head) / static_cast<double>(heads));
}

// The largest relative difference between Heddle's slopes and the document's formula.
double formula_error(const Findings& f, std::int64_t heads) {
  const std::int64_t first = f.fault("heads-from-zero") ? 0 : 1;
  const std::vector<double> slopes = nn::alibi_slopes(heads);
  double worst = 0;
  for (std::int64_t h = 1; h <= heads; ++h) {
    const double formula = by_formula(h - 1 + first, heads);
    const double slope = slopes[static_cast<std::size_t>(h - 1)];
    worst = std::max(worst, std::abs(slope - formula) / (f.fault("not-relative") ? 1 : formula));
  }
  return worst;
}

// Weights of the last query with queries and keys of zero: what the bias alone does. [heads][keys]
std::vector<std::vector<double>> weights_of_bias() {
  const Tensor zeros = Tensor::zeros({1, kTokens, kHeads, 4}, DType::f64);
  ops::AttentionOptions options;
  options.mask.causal = true;
  options.relative_bias = nn::alibi_bias(kHeads, {kTokens, kTokens}, DType::f64);
  std::vector<std::vector<double>> rows;
  rows.reserve(kHeads);
  for (std::int64_t h = 0; h < kHeads; ++h)
    rows.push_back(
        ops::attention_weights(zeros, zeros, options, {h, kTokens - 1, 1}).to_vector<double>());
  return rows;
}

// A bias of -m·(i-j) makes each step back worth e^(-m): log of the ratio of neighbours, against m.
double step_error(const Findings& f, const std::vector<std::vector<double>>& weights) {
  std::vector<double> slopes = nn::alibi_slopes(kHeads);
  if (f.fault("slopes-reversed")) std::reverse(slopes.begin(), slopes.end());
  double worst = 0;
  for (std::size_t h = 0; h < weights.size(); ++h)
    for (std::size_t j = 1; j < weights[h].size(); ++j)
      worst = std::max(worst, std::abs(std::log(weights[h][j] / weights[h][j - 1]) - slopes[h]));
  return worst;
}

void run(Findings& f) {
  double powers = 0;
  for (const std::int64_t heads : {1, 2, 4, 8, 16, 32})
    powers = std::max(powers, formula_error(f, heads));
  double others = INFINITY;
  for (const std::int64_t heads : {3, 6, 12, 20})
    others = std::min(others, formula_error(f, f.fault("powers-only") ? 8 : heads));
  const std::vector<std::vector<double>> weights = weights_of_bias();
  const double step = step_error(f, weights);
  f.number("powers_of_two", powers,
           {"heads 1 to 32, powers of two: slope against formula, relative",
            "头数为 1 到 32 的 2 的幂：斜率与公式的相对差"});
  f.number(
      "other_numbers", others,
      {"3, 6, 12, 20 heads: the smallest such difference", "3、6、12、20 个头：此差异的最小值"});
  f.number("step", step,
           {"log ratio of neighbouring weights − slope", "相邻权重之比的对数 − 斜率"});
  f.number(
      "steepest_reach", 1 / nn::alibi_slopes(kHeads).front(),
      {"8 heads: distance at which the steepest bias is −1", "8 头：最陡的头偏置降到 −1 的距离"});
  f.number("flattest_reach", 1 / nn::alibi_slopes(kHeads).back(),
           {"8 heads: the same for the flattest", "8 头：最平缓的头对应的距离"});

  report::LineChart chart;
  chart.x_label = f.say({"distance to the key", "到键的距离"});
  chart.y_label = f.say({"weight", "权重"});
  chart.log_y = true;
  for (const std::size_t h : {0U, 2U, 4U, 7U}) {
    report::Series series{f.say({"head ", "头 "}) + std::to_string(h + 1), {}};
    for (std::size_t d = 0; d < weights[h].size(); ++d)
      series.points.push_back({static_cast<double>(d), weights[h][weights[h].size() - 1 - d]});
    chart.series.push_back(series);
  }
  f.figure(chart, {"What the bias alone makes of the weights of the last of 64 tokens: straight "
                   "lines on a logarithmic scale, steep heads for near, flat ones for far tokens.",
                   "仅由偏置决定的、64 个词元中最后一个词元的注意力权重：对数坐标下是直线，"
                   "陡的头看近处，平的头看远处。"});
  // By hand, 8 heads: 2⁻¹ and 2⁻⁸. Of 3 heads the third has 2⁻², and 2⁻⁸ by the formula: 64 times.
  f.control({"8 heads: reach of the steepest", "8 头：最陡的头的距离"},
            1 / nn::alibi_slopes(kHeads).front(), Relation::equal, 2);
  f.control({"8 heads: reach of the flattest", "8 头：最平缓的头的距离"},
            1 / nn::alibi_slopes(kHeads).back(), Relation::equal, 256);
  f.control({"3 heads: relative difference − 63", "3 头：相对差 − 63"},
            std::abs(formula_error(f, 3) - 63), Relation::less, 1e-9);
  const bool right =
      f.check({"powers of two differ from the formula by", "头数为 2 的幂时与公式之差"}, powers,
              Relation::less, 1e-12);
  const bool linear = f.check({"the bias differs from −m·(i − j) by", "偏置与 −m·(i − j) 之差"},
                              step, Relation::less, 1e-9);
  const bool everywhere = f.check({"other numbers of heads differ by", "其他头数时与公式之差"},
                                  others, Relation::less, 1e-12);
  f.verdict(!right || !linear ? Verdict::refuted
            : everywhere      ? Verdict::holds
                              : Verdict::conditional);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "alibi-slopes",
      .topic = topics::positions,
      .title = {"The slopes of ALiBi", "ALiBi 的斜率"},
      .claim = {"ALiBi adds −m·(i − j) to the scores, with the slope m = 2^(−8h/n) for head h of "
                "n, and nothing is trained.",
                "ALiBi 给分数加上 −m·(i − j)，n 个头中第 h 个头的斜率 m = 2^(−8h/n)，无需训练。"},
      .source = {"Document 004, ALiBi.", "文档 004「ALiBi」。"},
      .method = {"Heddle's slopes, which are those of the published models, against the formula "
                 "for powers of two and for other numbers of heads. With queries and keys of zero, "
                 "the attention weights show the bias alone: the ratio of neighbours must be e^m.",
                 "将 Heddle 的斜率（与已发布模型一致）与公式比较，头数取 2 的幂和其他数。令 q 和 k "
                 "为零，注意力权重就只反映偏置：相邻权重之比必须等于 e^m。"},
      .threshold = {"1e-12 relative for the slopes, 1e-9 for logarithms of weights that go down to "
                    "1e-14.",
                    "斜率的相对误差 1e-12；权重最小到 1e-14，其对数取 1e-9。"},
      .expected = Verdict::conditional,
      .because = {"The formula is right when the number of heads is a power of two. For other "
                  "numbers the authors' models take the slopes of the next smaller power p and add "
                  "every second slope of 2p, which the formula does not give.",
                  "当头数是 2 的幂时公式正确。否则原作者的模型先取不超过头数的最大 2 的幂 p "
                  "的斜率，再从 2p "
                  "的斜率中隔一个取一个补足，这不是公式给出的值。"},
      .faults =
          {{"heads-from-zero", {"heads are counted from 0 in the formula", "公式中的头从 0 数起"}},
           {"not-relative", {"differences are not relative to the slope", "差异没有除以斜率"}},
           {"slopes-reversed",
            {"the slopes are those of the heads in reversed order", "斜率按头的逆序取用"}},
           {"powers-only", {"8 heads stand for every other number", "其他头数都用 8 头代替"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::alibi_slopes
