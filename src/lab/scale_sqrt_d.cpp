// scale-sqrt-d: why scores are divided by the square root of the width of a head.
#include <algorithm>
#include <cmath>

#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::scale_sqrt_d {

namespace {

constexpr std::int64_t kQueries = 128, kKeys = 64;

struct Softmax {
  double variance = 0;  // of the scores
  double highest = 0;   // weight of a row, on average
  // Length of dL/dscores of a row, L = Σ c·weight with random c: of the middle row and on average.
  double gradient = 0, mean_gradient = 0;
};

Softmax measure(const Findings& f, std::int64_t width, double scale) {
  const Tensor q = normal({kQueries, width}, 40), k = normal({kKeys, width}, 41);
  Tensor scores = ops::scale(ops::matmul(q, ops::transpose(k, 0, 1)), scale);  // [queries, keys]
  Softmax result;
  const double mean = ops::mean_all(scores).item();
  result.variance = ops::mean_all(ops::square(ops::shift(scores, -mean))).item();
  scores = scores.detach();
  scores.set_requires_grad(true);
  Tape tape;
  const Tensor weights = ops::softmax(scores);
  const Tensor mixed = f.fault("scores-for-weights") ? scores : weights;
  tape.backward(ops::sum_all(ops::mul(mixed, normal({kQueries, kKeys}, 42))));
  const Tensor rows = f.fault("highest-score") ? scores : weights;
  result.highest = ops::mean_all(ops::max(rows.detach(), 1)).item();
  std::vector<double> lengths =
      ops::sqrt(ops::sum(ops::square(scores.grad()), 1)).to_vector<double>();
  std::sort(lengths.begin(), lengths.end());
  result.gradient = lengths[lengths.size() / 2];
  for (const double length : lengths) result.mean_gradient += length / kQueries;
  return result;
}

// Over all widths.
struct Extremes {
  double variance_off = 0;         // of the scaled scores, from 1
  double highest_scaled = 0;       // weight
  double highest = 0;              // without scale, at the last width
  double least_growth = INFINITY;  // of it, from one width to the next

  void add(const Softmax& plain, const Softmax& scaled) {
    variance_off = std::max(variance_off, std::abs(scaled.variance - 1));
    highest_scaled = std::max(highest_scaled, scaled.highest);
    least_growth = std::min(least_growth, plain.highest - highest);
    highest = plain.highest;
  }
};

// `mean_over_middle`: of the gradient that is left without scale.
void control_widths(Findings& f, const Extremes& e, double mean_over_middle) {
  f.control({"variance of the scaled scores: farthest from 1", "缩放后分数的方差与 1 的最大差"},
            e.variance_off, Relation::less, 0.1);
  f.control(
      {"highest weight without scale grows with d by at least", "不缩放时最大权重随 d 的最小增量"},
      e.least_growth, Relation::greater, 0);
  f.control({"highest weight with scale, over all d", "缩放后各 d 中的最大权重"}, e.highest_scaled,
            Relation::less, 0.3);
  f.control({"the mean gradient is left by few rows: mean over middle",
             "平均梯度由少数行决定：平均与中位数之比"},
            mean_over_middle, Relation::greater, 10);
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = f.say({"width of a head", "每个头的宽度 d"});
  chart.y_label = f.say({"size of dL/dscore", "dL/d分数 的大小"});
  chart.log_x = chart.log_y = true;
  chart.series = {{f.say({"q·k / √d", "q·k / √d"}), {}}, {f.say({"q·k", "q·k"}), {}}};
  std::vector<double> widths, variances;
  Softmax first, last, plain_first, plain_last;
  Extremes extremes;
  for (const std::int64_t width : {4, 16, 64, 256, 1024}) {
    const auto d = static_cast<double>(width);
    const double scale = f.fault("scale-by-d") ? 1 / d : 1 / std::sqrt(d);
    const Softmax plain = measure(f, width, 1), scaled = measure(f, width, scale);
    extremes.add(plain, scaled);
    widths.push_back(d);
    variances.push_back(plain.variance);
    chart.series[0].points.push_back({d, scaled.gradient});
    chart.series[1].points.push_back({d, plain.gradient});
    if (widths.size() == 1) first = scaled, plain_first = plain;
    last = scaled, plain_last = plain;
    const std::string text = std::to_string(width);
    f.number("variance_" + text, plain.variance,
             {"d = " + text + ": variance of q·k", "d = " + text + "：q·k 的方差"});
    f.number("highest_" + text, plain.highest,
             {"d = " + text + ": highest of 64 weights, without scale",
              "d = " + text + "：不缩放时 64 个权重中的最大值"});
    f.number("highest_scaled_" + text, scaled.highest,
             {"d = " + text + ": the same with scale", "d = " + text + "：缩放后的最大值"});
  }
  const double exponent = fitted_exponent(widths, variances);
  const bool mean = f.fault("mean-for-middle");
  const double mean_lost = plain_last.mean_gradient / plain_first.mean_gradient;
  const double lost = mean ? mean_lost : plain_last.gradient / plain_first.gradient;
  const double kept = last.gradient / first.gradient;
  f.number("exponent", exponent, {"variance of q·k ~ d to the power of", "q·k 的方差 ~ d 的幂次"});
  f.number("gradient_left", lost,
           {"gradient of the middle row at d = 1024 against d = 4, without scale",
            "不缩放：d = 1024 与 d = 4 的梯度中位数之比"});
  f.number("mean_gradient_left", mean_lost,
           {"the same for the mean instead of the middle row", "同上，取各行平均而非中位数"});
  f.number("gradient_left_scaled", kept, {"the middle row with scale", "缩放后的中位数之比"});
  f.figure(
      chart,
      {"What is left of the gradient behind the softmax. Without the scale one weight "
       "takes all, and a saturated softmax passes almost nothing on.",
       "经过 softmax 之后还剩多少梯度。不缩放时一个权重独占全部，饱和的 softmax 几乎不传递梯度。"});
  control_widths(f, extremes, mean_lost / lost);
  const bool grows = f.check({"exponent of the variance: 1 up to", "方差的幂次与 1 之差"},
                             std::abs(exponent - 1), Relation::less, 0.1);
  const bool saturates =
      f.check({"highest weight at d = 1024 without scale", "d = 1024 不缩放时的最大权重"},
              plain_last.highest, Relation::greater, 0.9);
  const bool calm = f.check({"highest weight at d = 1024 with scale", "d = 1024 缩放后的最大权重"},
                            last.highest, Relation::less, 0.3);
  const bool fades =
      f.check({"gradient left without scale", "不缩放时剩下的梯度"}, lost, Relation::less, 0.1);
  const bool stays =
      f.check({"gradient left with scale", "缩放后剩下的梯度"}, kept, Relation::greater, 0.7);
  f.verdict(grows && saturates && calm && fades && stays ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "scale-sqrt-d",
      .topic = topics::scores,
      .title = {"Why scores are divided by √d", "为什么要除以 √d"},
      .claim = {"Scores are divided by the root of the key's width so that the softmax is not "
                "pushed to where its gradients are tiny.",
                "分数除以键向量维度的平方根，是为了不让 softmax 被推入梯度极小的区域。"},
      .source = {"Document 004, self-attention, steps of the computation.",
                 "文档 004「Self-attention 工作原理」的计算步骤。"},
      .method =
          {"128 queries and 64 keys with independent entries of variance 1, for widths from 4 "
           "to 1024: the variance of q·k, the highest weight of a row, and by Heddle's tape "
           "the gradient that reaches the scores through the softmax, with and without the "
           "scale.",
           "128 个查询、64 个键，各分量独立、方差为 1，宽度从 4 到 1024：测量 q·k "
           "的方差、每行的最大权重，"
           "以及由 Heddle 自动微分得到的、穿过 softmax 到达分数的梯度，缩放与不缩放各一次。"},
      .threshold =
          {"Exponent 1 ± 0.1 (8192 scores of each width); at d = 1024 a highest weight "
           "above 0.9 without and below 0.3 with scale; of the gradient at d = 4 less than "
           "a tenth is left without and more than 0.7 with it. The middle row decides: the "
           "mean is made by the few rows that happen to be undecided.",
           "幂次 1 ± 0.1（每种宽度 8192 个分数）；d = 1024 时最大权重不缩放大于 0.9、缩放后小于 "
           "0.3；"
           "与 d = 4 相比，梯度不缩放剩下不到十分之一，缩放后剩下 0.7 "
           "以上。以各行的中位数为准：平均值由少数恰好难分胜负的行决定。"},
      .expected = Verdict::holds,
      .because =
          {"A sum of d independent products has variance d, so plain scores grow with √d and "
           "the softmax becomes a maximum. Divided by √d they have variance 1 at every "
           "width. It rests on entries of variance 1, which initialisation and norms see to.",
           "d 个独立乘积之和的方差为 d，所以不缩放的分数随 √d 增大，softmax 变成取最大值。除以 √d "
           "之后，任何宽度下方差都是 1。前提是各分量方差为 1，这由初始化和归一化来保证。"},
      .faults = {{"scale-by-d", {"scores are divided by d instead of √d", "分数除以 d 而不是 √d"}},
                 {"highest-score",
                  {"the highest score is taken for the highest weight", "把最大分数当成最大权重"}},
                 {"scores-for-weights",
                  {"the gradient does not go through the softmax", "梯度没有穿过 softmax"}},
                 {"mean-for-middle",
                  {"the mean of the rows stands for the middle one", "用各行平均代替了中位数"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::scale_sqrt_d
