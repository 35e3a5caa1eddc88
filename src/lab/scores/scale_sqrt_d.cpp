// scale-sqrt-d: why scores are divided by the square root of the width of a head.
#include <algorithm>
#include <array>
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
  result.variance = ops::mean_all(ops::square(ops::add(scores, -mean))).item();
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
  f.control(tr("variance of the scaled scores: farthest from 1"), e.variance_off, Relation::less,
            0.1);
  f.control(tr("highest weight without scale grows with d by at least"), e.least_growth,
            Relation::greater, 0);
  f.control(tr("highest weight with scale, over all d"), e.highest_scaled, Relation::less, 0.3);
  f.control(tr("the mean gradient is left by few rows: mean over middle"), mean_over_middle,
            Relation::greater, 10);
}

constexpr std::array<std::int64_t, 5> kWidths = {4, 16, 64, 256, 1024};

// Scores divided by d to the power p: how the softmax saturates for every p, measured at all
// widths.
report::Explorer saturation(const Findings& f) {
  constexpr int kSteps = 8;
  report::Explorer e{
      .name = "scale",
      .title = tr("Divide by another power of d"),
      .caption =
          tr("The highest of 64 weights when scores are divided by d to the power p: 0 is no "
             "scale, 0.5 the square root."),
      .law = "grid",
      .slider = {.label = "p", .low = 0, .high = 1, .start = 0.5, .steps = kSteps},
      .x = {tr("width of a head"), 4, 1024, true},
      .y = {tr("highest weight"), 0, 1},
      .lines = {tr("divided by d to the power p"), tr("divided by √d")},
      .measured = {}};
  for (int step = 0; step <= kSteps; ++step) {
    const double p = static_cast<double>(step) / kSteps;
    for (const std::int64_t width : kWidths) {
      const auto d = static_cast<double>(width);
      e.measured.push_back({p, 0, d, measure(f, width, std::pow(d, -p)).highest});
      e.measured.push_back({p, 1, d, measure(f, width, 1 / std::sqrt(d)).highest});
    }
  }
  return e;
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = tr("width of a head");
  chart.y_label = tr("size of dL/dscore");
  chart.log_x = chart.log_y = true;
  chart.series = {{"q·k / √d", {}}, {"q·k", {}}};
  std::vector<double> widths, variances;
  Softmax first, last, plain_first, plain_last;
  Extremes extremes;
  for (const std::int64_t width : kWidths) {
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
    f.number("variance_" + text, plain.variance, tr("d = {}: variance of q·k", width));
    f.number("highest_" + text, plain.highest,
             tr("d = {}: highest of 64 weights, without scale", width));
    f.number("highest_scaled_" + text, scaled.highest, tr("d = {}: the same with scale", width));
  }
  const double exponent = fitted_exponent(widths, variances);
  const bool mean = f.fault("mean-for-middle");
  const double mean_lost = plain_last.mean_gradient / plain_first.mean_gradient;
  const double lost = mean ? mean_lost : plain_last.gradient / plain_first.gradient;
  const double kept = last.gradient / first.gradient;
  f.number("exponent", exponent, tr("variance of q·k ~ d to the power of"));
  f.number("gradient_left", lost,
           tr("gradient of the middle row at d = 1024 against d = 4, without scale"));
  f.number("mean_gradient_left", mean_lost, tr("the same for the mean instead of the middle row"));
  f.number("gradient_left_scaled", kept, tr("the middle row with scale"));
  f.figure(chart, tr("What is left of the gradient behind the softmax. Without the scale one "
                     "weight takes all, and a saturated softmax passes almost nothing on."));
  f.explore(saturation(f));
  control_widths(f, extremes, mean_lost / lost);
  const bool grows =
      f.check(tr("exponent of the variance: 1 up to"), std::abs(exponent - 1), Relation::less, 0.1);
  const bool saturates = f.check(tr("highest weight at d = 1024 without scale"), plain_last.highest,
                                 Relation::greater, 0.9);
  const bool calm =
      f.check(tr("highest weight at d = 1024 with scale"), last.highest, Relation::less, 0.3);
  const bool fades = f.check(tr("gradient left without scale"), lost, Relation::less, 0.1);
  const bool stays = f.check(tr("gradient left with scale"), kept, Relation::greater, 0.7);
  f.verdict(grows && saturates && calm && fades && stays ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "scale-sqrt-d",
      .topic = topics::scores,
      .title = mark("Why scores are divided by √d"),
      .claim = mark("Scores are divided by the root of the key's width so that the softmax is not "
                    "pushed to where its gradients are tiny."),
      .formula = "s = frac{q · k}{sqrt{d}}",
      .source = mark("Document 004, self-attention, steps of the computation."),
      .method = mark(
          "128 queries and 64 keys with independent entries of variance 1, for widths from 4 to "
          "1024: the variance of q·k, the highest weight of a row, and by Heddle's tape the "
          "gradient that reaches the scores through the softmax, with and without the scale."),
      .threshold =
          mark("Exponent 1 ± 0.1 (8192 scores of each width); at d = 1024 a highest weight above "
               "0.9 without and below 0.3 with scale; of the gradient at d = 4 less than a tenth "
               "is left without and more than 0.7 with it. The middle row decides: the mean is "
               "made by the few rows that happen to be undecided."),
      .expected = Verdict::holds,
      .because =
          mark("A sum of d independent products has variance d, so plain scores grow with √d and "
               "the softmax becomes a maximum. Divided by √d they have variance 1 at every width. "
               "It rests on entries of variance 1, which initialisation and norms see to."),
      .faults = {{"scale-by-d", mark("scores are divided by d instead of √d")},
                 {"highest-score", mark("the highest score is taken for the highest weight")},
                 {"scores-for-weights", mark("the gradient does not go through the softmax")},
                 {"mean-for-middle", mark("the mean of the rows stands for the middle one")}},
      .run = run,
  };
}

}  // namespace heddle::lab::scale_sqrt_d
