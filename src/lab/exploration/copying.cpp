// copying: when does attention hand back one value as it is?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/exploration/one_query.h"
#include "lab/findings.h"
#include "lab/topics.h"

namespace heddle::lab::copying {

namespace {

constexpr double kBarely = 0.01;  // "larger", and no more than that

// Weight of the key that the query points at, when it leads all others by `gap`: orthonormal keys
// and q = gap · k_j.
double weight_at(const Findings& f, double gap, std::int64_t n) {
  const Tensor keys = ops::reshape(unit_vectors(n), {1, n, n});
  const double length = f.fault("default-scale") ? gap / std::sqrt(static_cast<double>(n)) : gap;
  const Tensor c = attend(query_for({0}, length, 1, n), keys, keys);
  return c.to_vector<double>()[f.fault("next-key") ? 1 : 0];
}

// One random query over 8 orthonormal keys at temperature T: q/T has scores s/T.
report::Explorer temperature() {
  constexpr std::int64_t kKeys = 8;
  const Tensor q = normal({1, kKeys}, 31, 2),
               keys = ops::reshape(unit_vectors(kKeys), {1, kKeys, kKeys});
  report::Explorer e{
      .name = "temperature",
      .title = tr("Choose a temperature"),
      .caption =
          tr("Weights of one query over 8 keys with fixed scores that are divided by T. A "
             "small T makes leads large: the softmax copies one value; a large T mixes all."),
      .law = "softmax",
      .numbers = {{"scores", q.to_vector<double>()}},
      .slider = {.label = tr("temperature T"),
                 .low = 1.0 / 16,
                 .high = 16,
                 .start = 1,
                 .steps = 32,
                 .logarithmic = true},
      .x = {tr("key"), 1, static_cast<double>(kKeys)},
      .y = {tr("weight"), 0, 1},
      .lines = {tr("weight")},
      .measured = {},
      .readings = {{tr("highest weight:")}, {tr("entropy, bits:")}}};
  for (int power = -4; power <= 4; ++power) {
    const double t = std::pow(2.0, power);
    const std::vector<double> w = attend(ops::scale(q, 1 / t), keys, keys).to_vector<double>();
    double highest = 0, entropy = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      e.measured.push_back({t, 0, static_cast<double>(i + 1), w[i]});
      highest = std::max(highest, w[i]);
      if (w[i] > 0) entropy -= w[i] * std::log2(w[i]);
    }
    e.readings[0].measured.emplace_back(t, highest);
    e.readings[1].measured.emplace_back(t, entropy);
  }
  return e;
}

void run(Findings& f) {
  report::LineChart chart;
  chart.x_label = tr("lead of the largest score");
  chart.y_label = tr("weight α_j of that key");
  double off_formula = 0;
  for (const std::int64_t n : {4, 64, 1024}) {
    report::Series line{fmt::format("n = {}", n), {}};
    for (double gap = 0; gap <= 20; gap += 0.5) {
      const double weight = weight_at(f, gap, f.fault("one-key-fewer") ? n - 1 : n);
      const double formula = 1 / (1 + static_cast<double>(n - 1) * std::exp(-gap));
      off_formula = std::max(off_formula, std::abs(weight - formula));
      line.points.push_back({gap, weight});
    }
    chart.series.push_back(line);
  }
  f.figure(
      chart,
      tr("The weight passes one half where the lead is log(n − 1): more keys want a larger lead."));

  f.explore(temperature());
  const double barely = weight_at(f, kBarely, 64), half = weight_at(f, std::log(63), 64);
  const double enough = weight_at(f, std::log(63) + std::log(999), 64);
  f.number("weight_barely_larger", barely, tr("α_j of 64 keys, lead 0.01"));
  f.number("weight_at_log_n", half, tr("α_j of 64 keys, lead log 63"));
  f.number("weight_far_larger", enough, tr("α_j of 64 keys, lead log 63 + log 999"));
  f.number("off_formula", off_formula, tr("largest distance from 1/(1 + (n−1)·e^−lead)"));

  const bool not_enough =
      f.counter(tr("α_j when the score is merely larger"), barely, Relation::less, 0.5);
  const bool copies = f.check(tr("α_j when the lead is log(n−1) + log 999"), enough,
                              Relation::at_least, 0.999 - 1e-12);
  f.control(tr("distance from the formula"), off_formula, Relation::less, 1e-12);
  f.control(tr("α_j at a lead of log(n−1): distance from ½"), std::abs(half - 0.5), Relation::less,
            1e-12);
  f.verdict(!copies ? Verdict::refuted : not_enough ? Verdict::conditional : Verdict::holds);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "copying",
      .topic = topics::exploration,
      .title = mark("Copying one value"),
      .claim = mark("If the query's product with one key is larger than with all others, that key "
                    "takes all the weight, and the output is its value."),
      .formula = "α_j = frac{exp(k_j^T q)}{sum_i exp(k_i^T q)} quad c = sum_i α_i v_i",
      .source = mark(
          "Document 001, (a) ii–iii, asks for “larger” only; document 003, 1(a), for much larger."),
      .method =
          mark("Orthonormal keys, q = lead · k_j, so that k_j leads all others by exactly the "
               "lead; the weight it gets from Heddle's attention for 4, 64 and 1024 keys."),
      .threshold = mark("The claim fails where the leading key has less than half of the weight; "
                        "it copies where it has 99.9 %. The formula must fit to 1e-12."),
      .expected = Verdict::conditional,
      .because = mark("Being larger is not enough: α_j = 1/(1 + (n−1)·e^−lead), so the lead must "
                      "exceed log(n−1) by some margin, and a lead near 0 gives all keys about 1/n. "
                      "With “much larger than log n” the claim holds."),
      .faults = {{"default-scale", mark("scores are divided by √d, which the documents do not do")},
                 {"next-key", mark("the weight of the next key is read")},
                 {"one-key-fewer", mark("there is one key fewer than the formula counts")}},
      .run = run,
  };
}

}  // namespace heddle::lab::copying
