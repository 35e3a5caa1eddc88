// attention-symmetry: is the attention matrix symmetric when W_q = W_k?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::attention_symmetry {

namespace {

constexpr std::int64_t kWidth = 6, kTokens = 7;

struct Measured {
  double scores;       // largest |S − Sᵀ|
  double map;          // largest |A − Aᵀ|
  double normalisers;  // largest / smallest row sum of exp(S)
  double off_ratio;    // largest |a_ij·Z_i − a_ji·Z_j| / Z_i: the reason, put to the test
  Tensor a;
};

double asymmetry(const Findings& f, const Tensor& square) {
  if (f.fault("not-transposed")) return largest_difference(square, square);
  return largest_difference(square, ops::contiguous(views::transpose(square, 0, 1)));
}

double off_ratio(const Tensor& a, const std::vector<double>& sums) {
  const auto rows = rows_of(a);
  double worst = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      worst = std::max(worst, std::abs(rows[i][j] * sums[i] - rows[j][i] * sums[j]) / sums[i]);
  return worst;
}

// One head whose W_q and W_k are both w: [C, C]. x: [1, T, C]
Measured measure(const Findings& f, const Tensor& x, const Tensor& w) {
  const bool own = f.fault("own-keys");
  nn::Attention layer = attention_layer({.width = kWidth}, 1);
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    if (name == "q.weight" || (name == "k.weight" && !own)) t = w;
  });
  const Tensor a =
      ops::reshape(layer.weights(x, {.head = 0, .first = 0, .count = kTokens}), {kTokens, kTokens});
  const Tensor q = ops::matmul(ops::reshape(x, {kTokens, kWidth}), ops::transpose(w, 0, 1));
  const double scale = f.fault("scale-left-out") ? 1 : 1 / std::sqrt(double{kWidth});
  const Tensor s = ops::scale(ops::matmul(q, ops::transpose(q, 0, 1)), scale);
  std::vector<double> sums;
  for (const auto& row : rows_of(ops::exp(s))) {
    double sum = 0;
    for (const double e : row) sum += e;
    sums.push_back(sum);
  }
  const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
  return {asymmetry(f, s), asymmetry(f, a), *high / *low, off_ratio(a, sums), a};
}

// Tokens on circles: token t is token 0 turned by t/7 of a full turn, at three speeds. The product
// of two tokens depends on their distance around the circle alone, so every row of the scores holds
// the same numbers in another order.
Tensor tokens_on_circles() {
  std::vector<double> x;
  for (std::int64_t t = 0; t < kTokens; ++t)
    for (int speed = 1; speed <= 3; ++speed) {
      const double angle = 2 * std::numbers::pi * speed * static_cast<double>(t) / kTokens;
      const double radius = 0.5 * speed;
      x.insert(x.end(), {radius * std::cos(angle), radius * std::sin(angle)});
    }
  return Tensor::from<double>({1, kTokens, kWidth}, std::span<const double>(x));
}

report::HeatMap map_of(const Tensor& a) {
  report::HeatMap map;
  map.x_label = tr("key");
  map.y_label = tr("query");
  map.values = rows_of(a);
  map.digits = 3;
  return map;
}

void run(Findings& f) {
  const Tensor x = normal({1, kTokens, kWidth}, 31);
  const Measured shared = measure(f, x, normal({kWidth, kWidth}, 32, 0.5));
  // A matrix with orthonormal columns keeps the products of the tokens.
  const Measured circles = measure(f, tokens_on_circles(), orthonormal_columns(kWidth, kWidth, 33));

  f.number("scores_asymmetry", shared.scores, tr("W_q = W_k, random tokens: |S − Sᵀ|"));
  f.number("map_asymmetry", shared.map, tr("W_q = W_k, random tokens: |A − Aᵀ|"));
  f.number("normaliser_ratio", shared.normalisers, tr("largest / smallest normaliser of a row"));
  f.number("circle_map_asymmetry", circles.map, tr("tokens on circles, W orthogonal: |A − Aᵀ|"));
  f.number("circle_normaliser_ratio", circles.normalisers,
           tr("the same: largest / smallest normaliser"));
  const double first = 1 / (1 + std::exp(1)), second = 1 / (std::exp(0) + std::exp(0));
  f.note(
      tr("By hand: the scalar tokens 1 and 0 with W_q = W_k = 1 have the scores [[1, 0], [0, 0]], "
         "and the weights off the diagonal are {:.3g} and {:.3g}.",
         first, second));
  f.figure(map_of(shared.a), tr("W_q = W_k, random tokens: A is not symmetric."));
  f.figure(map_of(circles.a),
           tr("Tokens on circles: all rows have one normaliser, A is symmetric."));

  f.control(tr("asymmetry of the scores when W_q = W_k"), shared.scores, Relation::less, 1e-12);
  f.control(tr("asymmetry of A when all normalisers are equal"), circles.map, Relation::less,
            1e-12);
  f.control(tr("their normalisers: largest / smallest − 1"), circles.normalisers - 1,
            Relation::less, 1e-12);
  f.control(tr("a_ij·Z_i − a_ji·Z_j, relative"), std::max(shared.off_ratio, circles.off_ratio),
            Relation::less, 1e-12);
  const bool symmetric =
      f.check(tr("asymmetry of A when W_q = W_k"), shared.map, Relation::less, 1e-12);
  f.verdict(symmetric ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "attention-symmetry",
      .topic = topics::scores,
      .title = mark("Is the attention matrix symmetric if W_q = W_k?"),
      .claim =
          mark("The attention matrix is not always symmetric, but W_q = W_k ensures that it is."),
      .formula = "A = softmax(frac{(X W_q) (X W_k)^T}{sqrt{d}})",
      .source = mark("Document 000, 2.2(a): both answers."),
      .method =
          mark("One head with W_q = W_k: asymmetry of the scores S and of the weights A on random "
               "tokens, and on tokens for which every row of S holds the same numbers."),
      .threshold = mark("1e-12; rounding is near 1e-16, and weights are up to 1."),
      .expected = Verdict::refuted,
      .because =
          mark("W_q = W_k makes the scores symmetric, but softmax divides each row by its own sum: "
               "a_ij/a_ji = Z_j/Z_i. So with symmetric scores A is symmetric exactly when all rows "
               "have the same normaliser, as for tokens that a rotation maps onto each other."),
      .faults = {{"own-keys", mark("W_k stays another matrix than W_q")},
                 {"not-transposed", mark("a matrix is compared with itself")},
                 {"scale-left-out", mark("the normalisers are those of scores without 1/√d")}},
      .run = run,
  };
}

}  // namespace heddle::lab::attention_symmetry
