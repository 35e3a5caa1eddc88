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
    std::string name;
    Tensor w;
    double share = 0;
  };
  const double size = 1 / std::sqrt(static_cast<double>(kWidth));
  Case cases[] = {{"identity", tr("W = 1"), identity()},
                  {"general", tr("W = W_qᵀ W_k, random"),
                   f.fault("rotations-for-any") ? rotations()
                                                : ops::matmul(normal({kWidth, kWidth}, 10, size),
                                                              normal({kWidth, kWidth}, 11, size))},
                  {"rotations", tr("W = a rotation per pair"), rotations()}};
  report::LineChart chart;
  chart.x_label = tr("position i");
  chart.y_label = tr("p_i · W · p_j at j = i + 8");
  for (Case& c : cases) {
    const Matrix m = products(f, c.w);
    c.share = share_within_diagonals(f, m);
    f.number(c.key, c.share,
             tr("{}: share of the variance that the distance does not explain", c.name));
    report::Series series{c.name, {}};
    for (std::size_t i = 0; i + kShown < kPositions; ++i)
      series.points.push_back({static_cast<double>(i), m[i][i + kShown]});
    chart.series.push_back(series);
  }
  f.figure(chart, tr("The same distance, all along the sequence. A function of the distance would "
                     "be a flat line."));
  f.control(tr("a general W: the distance leaves most unexplained"), cases[1].share,
            Relation::greater, 0.5);
  const bool plain = f.check(tr("without W the distance leaves unexplained"), cases[0].share,
                             Relation::less, kSame);
  const bool special = f.check(tr("with rotations as W"), cases[2].share, Relation::less, kSame);
  const bool general = f.check(tr("with a general W"), cases[1].share, Relation::less, kSame);
  f.verdict(general ? Verdict::holds : plain && special ? Verdict::conditional : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "sinusoid-product",
      .topic = topics::positions,
      .title = mark("Is p_i · W · p_j a function of i − j?"),
      .claim = mark("With sinusoidal codes the position term p_iᵀ W_qᵀ W_k p_j of a score is a "
                    "bias β(i − j) that depends on the distance only."),
      .formula = "p_i^T W_q^T W_k p_j = β(i - j)",
      .source = mark("Document 004, relative positions: the step from the product to β, taken "
                     "without a word. (The mixed terms of content and position it drops by a "
                     "stated assumption: that the two are independent.)"),
      .method =
          mark("All products of 256 codes of width 64 in float64, with W = 1, with the product of "
               "two random projections, and with a W made of one rotation and stretch per pair of "
               "dimensions. How much of their variance is left once the distance is known?"),
      .threshold = mark("1e-12 of the variance: rounding. A general W leaves a share that is seen "
                        "without a microscope."),
      .expected = Verdict::conditional,
      .because = mark("A step in position is a rotation R of each pair, and p_iᵀ W p_j stays the "
                      "same under it only if Rᵀ W R = W, that is if W commutes with these "
                      "rotations: W = 1 does, a learned W_qᵀ W_k does not. RoPE turns queries and "
                      "keys behind the projections instead, where nothing comes in between."),
      .faults = {{"shuffled-positions", mark("two positions have changed places")},
                 {"columns-for-diagonals", mark("columns are taken for diagonals")},
                 {"rotations-for-any", mark("the general W is made of rotations")}},
      .run = run,
  };
}

}  // namespace heddle::lab::sinusoid_product
