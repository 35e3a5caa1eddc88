// average-of-two: a query that takes the mean of two values.
#include <fmt/format.h>

#include <cmath>

#include "lab/experiments.h"
#include "lab/exploration/one_query.h"
#include "lab/findings.h"
#include "lab/topics.h"

namespace heddle::lab::average_of_two {

namespace {

constexpr std::int64_t kKeys = 32, kA = 3, kB = 17;

struct Result {
  double error;        // of c against (v_a + v_b)/2
  double off_formula;  // of α_a against e^β / (2·e^β + n − 2)
  double off_sum;      // of c against (e^β·(v_a + v_b) + Σ others) / (2·e^β + n − 2)
};

// Values are random, keys orthonormal, q = β(k_a + k_b).
Result at(const Findings& f, double beta) {
  const Tensor keys = ops::reshape(unit_vectors(kKeys), {1, kKeys, kKeys});
  const Tensor q =
      f.fault("one-key") ? query_for({kA}, beta, 1, kKeys) : query_for({kA, kB}, beta, 1, kKeys);
  const std::size_t b = f.fault("next-value") ? kB + 1 : kB;
  const Tensor v = normal({1, kKeys, 6}, 11);
  const std::vector<double> c = attend(q, keys, v).to_vector<double>();
  const std::vector<double> values = v.to_vector<double>();
  Result r{0, 0, 0};
  const double grown = std::exp(beta);
  for (std::size_t e = 0; e < 6; ++e) {
    const double wanted = (values[kA * 6 + e] + values[b * 6 + e]) / 2;
    r.error = std::max(r.error, std::abs(c[e] - wanted));
    double sum = (grown - 1) * (values[kA * 6 + e] + values[kB * 6 + e]);
    for (std::size_t i = 0; i < kKeys; ++i) sum += values[i * 6 + e];
    r.off_sum = std::max(r.off_sum, std::abs(c[e] - sum / (2 * grown + kKeys - 2)));
  }
  const double weight = attend(q, keys, keys).to_vector<double>()[kA];
  r.off_formula = std::abs(weight - 1 / (2 + (kKeys - 2) * std::exp(-beta)));
  return r;
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = "β";
  chart.y_label = tr("largest error of c against ½(v_a + v_b)");
  chart.log_y = true;
  report::Series line{"", {}};
  double off_formula = 0, off_sum = 0;
  for (double beta = 0; beta <= 30; beta += 1) {
    const Result r = at(f, f.fault("same-beta") ? 30 : beta);
    line.points.push_back({beta, r.error});
    off_formula = std::max(off_formula, r.off_formula);
    off_sum = std::max(off_sum, r.off_sum);
  }
  chart.series = {line};
  f.figure(chart, tr("The error falls as e^−β: 32 keys, two of them wanted."));
  const auto error_at = [&](std::size_t beta) { return line.points[beta].y; };
  f.number("error_beta_1", error_at(1), tr("error at β = 1"));
  f.number("error_beta_10", error_at(10), tr("error at β = 10"));
  f.number("error_beta_30", error_at(30), tr("error at β = 30"));
  f.number("off_formula", off_formula, tr("largest distance of α_a from e^β/(2e^β + n − 2)"));
  const bool near = f.check(tr("error of the mean at β = 30"), error_at(30), Relation::less, 1e-10);
  f.control(tr("distance from the formula"), off_formula, Relation::less, 1e-12);
  f.control(tr("distance of c from the sum that the weights give"), off_sum, Relation::less, 1e-12);
  f.control(tr("error at β = 1: the other keys still matter"), error_at(1), Relation::greater, 0.1);
  f.control(tr("log of error(10)/error(20), 10 up to"),
            std::abs(std::log(error_at(10) / error_at(20)) - 10), Relation::less, 0.1);
  f.verdict(near ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "average-of-two",
      .topic = topics::exploration,
      .title = mark("The mean of two values"),
      .claim = mark(
          "With orthonormal keys the query β(k_a + k_b), β large, makes the output ½(v_a + v_b)."),
      .formula = "q = β (k_a + k_b) quad → quad c ≈ frac{1}{2} (v_a + v_b)",
      .source = mark("Document 001, (b) ii; document 003, 1(b)."),
      .method =
          mark("32 orthonormal keys with random values; Heddle's attention for β = 0 to 30, the "
               "output against the mean of the two values, the weight against the formula."),
      .threshold = mark("The error at β = 30 must be below 1e-10: the other 30 keys weigh e^−30 ≈ "
                        "1e-13 each. The weights must follow the formula to 1e-12."),
      .expected = Verdict::holds,
      .because = mark("Both keys score β and all others 0, so the two share the weight equally and "
                      "the rest fades as e^−β. β must be well above log n."),
      .faults = {{"one-key", mark("the query points at one key only")},
                 {"next-value", mark("the mean is taken of v_a and the value behind v_b")},
                 {"same-beta", mark("every β is 30")}},
      .run = run,
  };
}

}  // namespace heddle::lab::average_of_two
