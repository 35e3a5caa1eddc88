// window-mask: the mask of sliding-window attention, and two published programs for it.
#include <array>
#include <cmath>
#include <limits>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/attention/attention.h"
#include "ops/binary/binary.h"
#include "ops/matmul/matmul.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::window_mask {

namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr std::size_t kTokens = 6, kWindow = 4, kWidth = 4;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// The document's M for N = 6 and w = 4: w/2 + 1 tokens, the last of them the token itself.
Matrix mask() {
  const double x = kHidden;
  return {{0, x, x, x, x, x}, {0, 0, x, x, x, x}, {0, 0, 0, x, x, x},
          {x, 0, 0, 0, x, x}, {x, x, 0, 0, 0, x}, {x, x, x, 0, 0, 0}};
}

// softmax(Q Kᵀ / √d + M) V as the formula says: every pair in memory.
Tensor dense(const Findings& f, const Tensor& q, const Tensor& k, const Tensor& v) {
  const double scale = f.fault("scale-left-out") ? 1 : 1 / std::sqrt(kWidth);
  const Tensor scores = ops::scale(ops::matmul(q, ops::transpose(k, 0, 1)), scale);
  return ops::matmul(ops::softmax(ops::add(scores, matrix(mask()))), v);
}

// Heddle's kernel: look_back counts the earlier tokens, w/2 of them.
Tensor banded(const Findings& f, const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto batched = [](const Tensor& t) {
    return ops::reshape(t, {1, t.size(0), 1, t.size(1)});
  };
  ops::AttentionOptions options;
  options.mask.causal = true;
  options.mask.look_back = f.fault("look-back-of-w") ? kWindow : kWindow / 2;
  return ops::reshape(ops::attention(batched(q), batched(k), batched(v), options),
                      {q.size(0), v.size(1)});
}

std::vector<double> softmax(std::vector<double> x) {
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v);
  for (double& v : x) v /= sum;
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The faults of the first program; without any of them, it is right.
struct Faults {
  bool extra_token = true;  // it goes back w/2 + 1 tokens instead of w/2
  bool empty_slots = true;  // slots that were never filled hold 0 and take part in the softmax
  bool reversed = true;     // slot m holds the score of token i − m, and meets V from its front
};

// The first program gives row i of its score tensor a slot for each distance, normalises whole rows
// and multiplies them with the rows of V from the window's beginning on. Returns the weight of each
// token: [N][N].
Matrix first_program(const Matrix& q, const Matrix& k, const Faults& faults) {
  const std::size_t back = kWindow / 2 + (faults.extra_token ? 1 : 0);
  Matrix weights(kTokens, std::vector<double>(kTokens, 0));
  for (std::size_t i = 0; i < kTokens; ++i) {
    const std::size_t begin = i > back ? i - back : 0, filled = i - begin + 1;
    std::vector<double> slots(faults.empty_slots ? back + 1 : filled, 0);
    for (std::size_t j = begin; j <= i; ++j) slots[i - j] = dot(q[i], k[j]) / std::sqrt(kWidth);
    slots = softmax(slots);
    for (std::size_t m = 0; m < filled; ++m)
      weights[i][faults.reversed ? begin + m : i - m] = slots[m];
  }
  return weights;
}

// The second program cuts the window out rightly, fills a mask with −∞, and then clears it from
// the token's own place on: that is the last one of the window, so all others stay hidden.
Matrix second_program(const Findings& f, const Matrix& q, const Matrix& k) {
  const bool mended = f.fault("second-program-mended");
  Matrix weights(kTokens, std::vector<double>(kTokens, 0));
  for (std::size_t i = 0; i < kTokens; ++i) {
    const std::size_t begin = i > kWindow / 2 ? i - kWindow / 2 : 0;
    std::vector<double> scores;
    for (std::size_t j = begin; j <= i; ++j) {
      const double hidden = j - begin >= i - begin || mended ? 0 : kHidden;
      scores.push_back(dot(q[i], k[j]) / std::sqrt(kWidth) + hidden);
    }
    scores = softmax(scores);
    for (std::size_t j = begin; j <= i; ++j) weights[i][j] = scores[j - begin];
  }
  return weights;
}

report::HeatMap map_of(const Matrix& weights) {
  report::HeatMap map;
  map.x_label = tr("token seen");
  map.y_label = tr("token");
  map.values = weights;
  map.limit = 1;
  return map;
}

// Weights that a token has for others which M hides.
double weight_outside(const Matrix& weights) {
  double most = 0;
  const Matrix m = mask();
  for (std::size_t i = 0; i < kTokens; ++i)
    for (std::size_t j = 0; j < kTokens; ++j)
      if (m[i][j] != 0) most = std::max(most, weights[i][j]);
  return most;
}

// Each of the first program's mistakes by itself: how far the outputs are from the right ones.
struct Alone {
  double extra, empty, reversed;

  double least() const { return std::min({extra, empty, reversed}); }
};

void show(Findings& f, const Alone& alone) {
  f.number("first_only_extra", alone.extra, tr("… with only the extra token left in"));
  f.number("first_only_empty", alone.empty, tr("… with only the empty slots left in"));
  f.number("first_only_reversed", alone.reversed, tr("… with only the reversed order left in"));
}

void control_programs(Findings& f, const Alone& alone, const Matrix& first, double score,
                      double second_minus_v) {
  f.control(tr("each of the three mistakes alone changes the output by"), alone.least(),
            Relation::greater, 0.01);
  f.control(tr("first program: weight of a token that M hides"), weight_outside(first),
            Relation::greater, 0.01);
  // Row 0 holds one score and three empty slots: 3 / (e^s + 3) is lost.
  double kept = 0;
  for (const double w : first.front()) kept += w;
  f.control(tr("weight lost by the first token, against 3/(e^s + 3)"),
            std::abs(1 - kept - 3 / (std::exp(score) + 3)), Relation::less, 1e-12);
  f.control(tr("the second program differs from V by"), second_minus_v, Relation::less, 1e-12);
}

void run(Findings& f) {
  const Tensor q = normal({kTokens, kWidth}, 91), k = normal({kTokens, kWidth}, 92),
               v = normal({kTokens, kWidth}, 93);
  const Tensor right = dense(f, q, k, v), identity = matrix([] {
                                            Matrix e(kTokens, std::vector<double>(kTokens, 0));
                                            for (std::size_t i = 0; i < kTokens; ++i) e[i][i] = 1;
                                            return e;
                                          }());
  const Matrix rows_q = rows_of(q), rows_k = rows_of(k);
  const auto off = [&](const Matrix& weights) {
    return largest_difference(ops::matmul(matrix(weights), v), right);
  };
  const Matrix first = f.fault("first-program-mended")
                           ? first_program(rows_q, rows_k, {false, false, false})
                           : first_program(rows_q, rows_k, {});
  const Matrix second = second_program(f, rows_q, rows_k);
  const Alone alone{off(first_program(rows_q, rows_k, {true, false, false})),
                    off(first_program(rows_q, rows_k, {false, true, false})),
                    off(first_program(rows_q, rows_k, {false, false, true}))};
  const double second_minus_v = largest_difference(ops::matmul(matrix(second), v), v);
  const double band_off = largest_difference(banded(f, q, k, v), right);
  const double mended = off(first_program(rows_q, rows_k, {false, false, false}));
  double first_lost = 0;  // in the first row, to slots that hold no token
  for (const double w : first.front()) first_lost += w;

  f.number("banded_off", band_off, tr("Heddle's banded kernel − dense with M"));
  f.number("first_off", off(first), tr("first program − dense with M"));
  f.number("first_outside", weight_outside(first), tr("… largest weight of a token that M hides"));
  f.number("first_lost", 1 - first_lost, tr("… weight the first token loses to empty slots"));
  show(f, alone);
  f.number("first_mended", mended, tr("… with all three mended"));
  f.number("second_off", off(second), tr("second program − dense with M"));
  f.number("second_minus_v", second_minus_v, tr("… − V itself"));
  f.figure(map_of(rows_of(banded(f, q, k, identity))),
           tr("Right (Heddle, look_back = 2): three tokens, the last the token itself."));
  f.figure(map_of(first), tr("First program: a fourth token is seen, the order is reversed, and "
                             "early rows do not sum to 1."));
  f.figure(map_of(second), tr("Second program: every token sees itself alone."));

  control_programs(f, alone, first, dot(rows_q[0], rows_k[0]) / std::sqrt(kWidth), second_minus_v);
  f.control(tr("banded and dense with M differ by"), band_off, Relation::less, 1e-12);
  f.control(tr("the first program, mended, differs by"), mended, Relation::less, 1e-12);
  const bool first_right =
      f.check(tr("the first program differs by"), off(first), Relation::less, 1e-12);
  const bool second_right =
      f.check(tr("the second program differs by"), off(second), Relation::less, 1e-12);
  f.verdict(first_right && second_right   ? Verdict::holds
            : first_right || second_right ? Verdict::conditional
                                          : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "window-mask",
      .topic = topics::windows,
      .title = mark("Sliding-window attention and two programs for it"),
      .claim = mark("The two published programs compute the attention of the mask M, with w/2 + 1 "
                    "visible tokens ending at the token itself."),
      .formula = "M_{i j} = 0 quad 0 ≤ i - j ≤ frac{w}{2}",
      .source = mark("Document 000, 3: M for N = 6 and w = 4, and the programs of 3.1(c)."),
      .method = mark("The formula with M, every pair in memory; Heddle's banded kernel with "
                     "look_back = w/2; and both programs as published in their essentials, the "
                     "first also with each of its faults alone and with none."),
      .threshold = mark("1e-12: the same function or not; rounding is near 1e-16."),
      .expected = Verdict::refuted,
      .because = mark("The first goes back w/2 + 1 tokens (and writes beyond its tensor for it), "
                      "lets slots that were never filled into the softmax, and pairs the scores "
                      "with V in reversed order. The second hides everything but the token itself, "
                      "so its output is V. Heddle's banded kernel and the formula agree."),
      .faults = {{"scale-left-out", mark("the dense formula leaves 1/√d out")},
                 {"look-back-of-w", mark("the banded kernel looks back w tokens instead of w/2")},
                 {"first-program-mended", mark("the first program is run without its mistakes")},
                 {"second-program-mended",
                  mark("the second program's mask is cleared everywhere")}},
      .run = run,
  };
}

}  // namespace heddle::lab::window_mask
