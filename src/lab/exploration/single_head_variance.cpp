// single-head-variance: the mean of two values by one head, when one key's length is uncertain.
#include <cmath>

#include "lab/experiments.h"
#include "lab/exploration/one_query.h"
#include "lab/findings.h"
#include "lab/topics.h"

namespace heddle::lab::single_head_variance {

namespace {

constexpr std::int64_t kSamples = 20000, kKeys = 8;
constexpr double kBeta = 50;

struct Spread {
  double mean = 0, variance = 0;  // of α_a
  double between = 0;             // share of samples with α_a in [0.1, 0.9]
  std::vector<double> weights;    // α_a
};

// Keys 0 and 1 are a and b; values are unit vectors, so that c holds the weights.
Spread spread_at(const Findings& f, const NoisyKeys& keys, double beta) {
  const Tensor v = ops::broadcast_to(unit_vectors(kKeys), {kSamples, kKeys, kKeys});
  const double length = f.fault("default-scale") ? beta / std::sqrt(double{kKeys}) : beta;
  const Tensor q = f.fault("one-key") ? query_for({0}, length, kSamples, kKeys)
                                      : query_for({0, 1}, length, kSamples, kKeys);
  const Tensor c = attend(q, keys.k, v);
  Spread s;
  for (const auto& row : rows_of(c)) s.weights.push_back(row[0]);
  for (const double w : s.weights) {
    s.mean += w / kSamples;
    s.between += (w >= 0.1 && w <= 0.9 ? 1.0 : 0.0) / kSamples;
  }
  for (const double w : s.weights) s.variance += (w - s.mean) * (w - s.mean) / kSamples;
  return s;
}

void run(Findings& f) {
  const NoisyKeys keys = noisy_keys(f, kSamples, kKeys);
  report::LineChart chart;
  chart.x_label = "β";
  chart.log_x = true;
  chart.y_label = tr("of 20000 samples");
  report::Series variance{tr("variance of α_a"), {}};
  report::Series between{tr("share with 0.1 ≤ α_a ≤ 0.9"), {}};
  for (const double beta : {2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0}) {
    const Spread s = spread_at(f, keys, beta);
    variance.points.push_back({beta, s.variance});
    between.points.push_back({beta, s.between});
  }
  chart.series = {variance, between};
  f.figure(chart, tr("The larger β, the more the output jumps: 0.25 is the variance of a coin."));

  const Spread s = spread_at(f, keys, kBeta);
  f.number("mean_weight", s.mean, tr("mean of α_a at β = 50"));
  f.number("variance_weight", s.variance, tr("variance of α_a at β = 50"));
  f.number("share_between", s.between, tr("share of samples with 0.1 ≤ α_a ≤ 0.9"));
  // α_a = 1/(1 + e^{β(1−γ)}) is within [0.1, 0.9] where |β(1 − γ)| ≤ ln 9, and 1 − γ ~ N(0, ½).
  // Of 20000 samples a share of 5 % is known to 0.0015, the mean to 0.0035.
  f.control(tr("share between, against erf(ln 9 / β)"),
            std::abs(s.between - std::erf(std::log(9) / kBeta)), Relation::less, 0.006);
  f.control(tr("mean of α_a: distance from ½"), std::abs(s.mean - 0.5), Relation::less, 0.015);
  const bool jumps = f.check(tr("variance of α_a"), s.variance, Relation::greater, 0.2);
  const bool rarely = f.check(tr("share between v_a and v_b"), s.between, Relation::less, 0.1);
  f.verdict(jumps && rarely ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "single-head-variance",
      .topic = topics::exploration,
      .title = mark("One head and an uncertain key"),
      .claim = mark("If the length of k_a varies (γ ~ N(1, ½)), one head with q = β(μ_a + μ_b) "
                    "does not give the mean: the output jumps between v_a and v_b."),
      .formula = "k_a = γ μ_a quad q = β (μ_a + μ_b)",
      .source = mark("Document 001, (c); document 003, 1(c) ii."),
      .method =
          mark("20000 draws of 8 keys with orthonormal means; all vary by 1e-4, k_a along its own "
               "direction with variance ½. The weight α_a that Heddle's attention gives."),
      .threshold = mark("Variance above 0.2 (a number in [0, 1] has at most 0.25, when it is "
                        "always 0 or 1) and less than 10 % of the samples in between."),
      .expected = Verdict::holds,
      .because =
          mark("α_a = 1/(1 + e^{β(1−γ)}): the large β that keeps other keys out also magnifies "
               "every difference between γ and 1, and γ is on either side half of the time."),
      .faults = {{"variance-for-deviation",
                  mark("γ gets a deviation of ½ instead of a variance of ½")},
                 {"one-key", mark("the query points at k_a only")},
                 {"default-scale",
                  mark("scores are divided by √d, which the documents do not do")}},
      .run = run,
  };
}

}  // namespace heddle::lab::single_head_variance
