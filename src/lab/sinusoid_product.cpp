// sinusoid-product: does the score of two positions depend on their distance alone?
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/sinusoidal.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::lab::sinusoid_product {

namespace {

constexpr std::int64_t kWidth = 64, kPositions = 256, kShown = 8;
constexpr double kSame = 1e-12;

using Matrix = std::vector<std::vector<double>>;

// p_i^T W p_j for all pairs.
Matrix products(const Findings& f, const Tensor& w) {
  const Tensor p = nn::sinusoidal(0, kPositions, kWidth, DType::f64);
  if (f.fault("shuffled-positions")) {
    Matrix rows = rows_of(p);
    std::swap(rows[3], rows[200]);
    return rows_of(ops::matmul(ops::matmul(matrix(rows), w), ops::transpose(matrix(rows), 0, 1)));
  }
  return rows_of(ops::matmul(ops::matmul(p, w), ops::transpose(p, 0, 1)));
}

// Of all numbers' variance, the share that is left within the diagonals j - i = const: 0 when the
// product is a function of the distance, 1 when the distance tells nothing.
double share_within_diagonals(const Findings& f, const Matrix& m) {
  const bool columns = f.fault("columns-for-diagonals");
  double total = 0, within = 0, mean = 0;
  const auto n = static_cast<double>(kPositions * kPositions);
  for (const auto& row : m)
    for (const double v : row) mean += v / n;
  for (std::int64_t d = 1 - kPositions; d < kPositions; ++d) {
    const std::int64_t from = std::max<std::int64_t>(0, -d),
                       to = std::min(kPositions, kPositions - d);
    double sum = 0, squares = 0;
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t j = columns ? std::abs(d) : i + d;
      const double v = m[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] - mean;
      sum += v;
      squares += v * v;
    }
    total += squares;
    within += squares - sum * sum / static_cast<double>(to - from);
  }
  return std::abs(within) / total;
}

Tensor identity() {
  Matrix m(kWidth, std::vector<double>(kWidth, 0));
  for (std::size_t i = 0; i < kWidth; ++i) m[i][i] = 1;
  return matrix(m);
}

// A rotation and a stretch for each pair of dimensions: what commutes with all steps in position.
Tensor rotations() {
  const std::vector<double> numbers = normal({kWidth}, 12).to_vector<double>();
  Matrix m(kWidth, std::vector<double>(kWidth, 0));
  for (std::size_t i = 0; i < kWidth; i += 2) {
    m[i][i] = m[i + 1][i + 1] = numbers[i];
    m[i][i + 1] = numbers[i + 1];
    m[i + 1][i] = -numbers[i + 1];
  }
  return matrix(m);
}

void run(Findings& f) {
  struct Case {
    const char* key;
    Text name;
    Tensor w;
    double share = 0;
  };
  const double size = 1 / std::sqrt(static_cast<double>(kWidth));
  Case cases[] = {{"identity", {"W = 1", "W = 单位矩阵"}, identity()},
                  {"general",
                   {"W = W_qᵀ W_k, random", "W = W_qᵀ W_k（随机）"},
                   f.fault("rotations-for-any") ? rotations()
                                                : ops::matmul(normal({kWidth, kWidth}, 10, size),
                                                              normal({kWidth, kWidth}, 11, size))},
                  {"rotations", {"W = a rotation per pair", "W = 每对维度一个旋转"}, rotations()}};
  report::LineChart chart;
  chart.x_label = f.say({"position i", "位置 i"});
  chart.y_label = f.say({"p_i · W · p_j at j = i + 8", "j = i + 8 时的 p_i · W · p_j"});
  for (Case& c : cases) {
    const Matrix m = products(f, c.w);
    c.share = share_within_diagonals(f, m);
    f.number(c.key, c.share,
             {c.name.en + ": share of the variance that the distance does not explain",
              c.name.zh + "：距离无法解释的方差占比"});
    report::Series series{f.say(c.name), {}};
    for (std::size_t i = 0; i + kShown < kPositions; ++i)
      series.points.push_back({static_cast<double>(i), m[i][i + kShown]});
    chart.series.push_back(series);
  }
  f.figure(chart, {"The same distance, all along the sequence. A function of the distance would be "
                   "a flat line.",
                   "同一距离沿整个序列的取值。若只取决于距离，应是一条水平线。"});
  f.control(
      {"a general W: the distance leaves most unexplained", "W 为一般矩阵时距离未解释的部分很大"},
      cases[1].share, Relation::greater, 0.5);
  const bool plain =
      f.check({"without W the distance leaves unexplained", "无 W 时距离未解释的部分"},
              cases[0].share, Relation::less, kSame);
  const bool special =
      f.check({"with rotations as W", "W 由旋转组成时"}, cases[2].share, Relation::less, kSame);
  const bool general =
      f.check({"with a general W", "W 为一般矩阵时"}, cases[1].share, Relation::less, kSame);
  f.verdict(general ? Verdict::holds : plain && special ? Verdict::conditional : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "sinusoid-product",
      .topic = topics::positions,
      .title = {"Is p_i · W · p_j a function of i − j?", "p_i · W · p_j 只取决于 i − j 吗？"},
      .claim = {"With sinusoidal codes the position term p_iᵀ W_qᵀ W_k p_j of a score is a bias "
                "β(i − j) that depends on the distance only.",
                "采用正余弦编码时，注意力分数中的位置项 p_iᵀ W_qᵀ W_k p_j "
                "就是只取决于相对距离的偏置 β(i − j)。"},
      .source =
          {"Document 004, relative positions: the step from the product to β, taken without "
           "a word. (The mixed terms of content and position it drops by a stated assumption: "
           "that the two are independent.)",
           "文档 004「相对位置编码」：从位置内积直接写成 β_{i−j}，未加说明。"
           "（去掉内容与位置的交叉项则有明说的前提：「假设位置信息和输入信息相互独立」。）"},
      .method =
          {"All products of 256 codes of width 64 in float64, with W = 1, with the product of "
           "two random projections, and with a W made of one rotation and stretch per pair "
           "of dimensions. How much of their variance is left once the distance is known?",
           "以 float64 计算 256 个宽 64 的编码的所有内积：W 取单位矩阵、两个随机投影之积、"
           "以及每对维度一个旋转加伸缩的矩阵。已知距离之后，方差还剩下多少？"},
      .threshold = {"1e-12 of the variance: rounding. A general W leaves a share that is seen "
                    "without a microscope.",
                    "方差的 1e-12 以内算舍入误差；一般的 W 剩下的比例一眼可见。"},
      .expected = Verdict::conditional,
      .because = {"A step in position is a rotation R of each pair, and p_iᵀ W p_j stays the same "
                  "under it only if Rᵀ W R = W, that is if W commutes with these rotations: W = 1 "
                  "does, a learned W_qᵀ W_k does not. RoPE turns queries and keys behind the "
                  "projections instead, where nothing comes in between.",
                  "位置前进一步等于每对维度做一次旋转 R；要使 p_iᵀ W p_j 不变，必须 Rᵀ W R = W，"
                  "即 W 与这些旋转可交换：单位矩阵可以，学到的 W_qᵀ W_k 不行。"
                  "RoPE 改为在投影之后再旋转 q 和 k，中间就不再隔着别的矩阵。"},
      .faults = {{"shuffled-positions", {"two positions have changed places", "有两个位置对调了"}},
                 {"columns-for-diagonals", {"columns are taken for diagonals", "把列当成了对角线"}},
                 {"rotations-for-any",
                  {"the general W is made of rotations", "「一般的 W」其实由旋转组成"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::sinusoid_product
