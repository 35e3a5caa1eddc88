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

// The slope is free on the page; those of the 8 heads were measured.
report::Explorer slopes(const std::vector<std::vector<double>>& weights) {
  const std::vector<double> heads = nn::alibi_slopes(kHeads);
  report::Explorer e{
      .name = "alibi",
      .title = tr("Choose a slope"),
      .caption = tr("Weights of the last of 64 queries when all scores are equal and only the bias "
                    "−m·(i − j) is added. Heads 1 to 8 have slopes of 1/2 to 1/256."),
      .law = "alibi",
      .numbers = {{"tokens", {static_cast<double>(kTokens)}}},
      .slider = {.label = tr("slope m"),
                 .low = std::pow(2.0, -10),
                 .high = 2,
                 .start = std::pow(2.0, -3),
                 .steps = 44,
                 .logarithmic = true},
      .x = {tr("distance to the key"), 0, static_cast<double>(kTokens - 1)},
      .y = {tr("weight"), 1e-6, 1, true},
      .lines = {tr("weight")},
      .measured = {},
      .readings = {{tr("distance at which the bias is −1:")}}};
  for (std::size_t h = 0; h < weights.size(); ++h)
    for (std::size_t d = 0; d < weights[h].size(); d += 3)
      e.measured.push_back(
          {heads[h], 0, static_cast<double>(d), weights[h][weights[h].size() - 1 - d]});
  return e;
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
           tr("heads 1 to 32, powers of two: slope against formula, relative"));
  f.number("other_numbers", others, tr("3, 6, 12, 20 heads: the smallest such difference"));
  f.number("step", step, tr("log ratio of neighbouring weights − slope"));
  f.number("steepest_reach", 1 / nn::alibi_slopes(kHeads).front(),
           tr("8 heads: distance at which the steepest bias is −1"));
  f.number("flattest_reach", 1 / nn::alibi_slopes(kHeads).back(),
           tr("8 heads: the same for the flattest"));

  report::LineChart chart;
  chart.x_label = tr("distance to the key");
  chart.y_label = tr("weight");
  chart.log_y = true;
  for (const std::size_t h : {0U, 2U, 4U, 7U}) {
    report::Series series{tr("head {}", h + 1), {}};
    for (std::size_t d = 0; d < weights[h].size(); ++d)
      series.points.push_back({static_cast<double>(d), weights[h][weights[h].size() - 1 - d]});
    chart.series.push_back(series);
  }
  f.figure(chart,
           tr("What the bias alone makes of the weights of the last of 64 tokens: straight lines "
              "on a logarithmic scale, steep heads for near, flat ones for far tokens."));
  f.explore(slopes(weights));
  // By hand, 8 heads: 2⁻¹ and 2⁻⁸. Of 3 heads the third has 2⁻², and 2⁻⁸ by the formula: 64 times.
  f.control(tr("8 heads: reach of the steepest"), 1 / nn::alibi_slopes(kHeads).front(),
            Relation::equal, 2);
  f.control(tr("8 heads: reach of the flattest"), 1 / nn::alibi_slopes(kHeads).back(),
            Relation::equal, 256);
  f.control(tr("3 heads: relative difference − 63"), std::abs(formula_error(f, 3) - 63),
            Relation::less, 1e-9);
  const bool right =
      f.check(tr("powers of two differ from the formula by"), powers, Relation::less, 1e-12);
  const bool linear =
      f.check(tr("the bias differs from −m·(i − j) by"), step, Relation::less, 1e-9);
  const bool everywhere =
      f.check(tr("other numbers of heads differ by"), others, Relation::less, 1e-12);
  f.verdict(!right || !linear ? Verdict::refuted
            : everywhere      ? Verdict::holds
                              : Verdict::conditional);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "alibi-slopes",
      .topic = topics::positions,
      .title = mark("The slopes of ALiBi"),
      .claim = mark("ALiBi adds −m·(i − j) to the scores, with the slope m = 2^(−8h/n) for head h "
                    "of n, and nothing is trained."),
      .formula = "s_{i j} = frac{q_i · k_j}{sqrt{d}} - m_h (i - j) quad m_h = 2^{-8 h/n}",
      .source = mark("Document 004, ALiBi."),
      .method =
          mark("Heddle's slopes, which are those of the published models, against the formula for "
               "powers of two and for other numbers of heads. With queries and keys of zero, the "
               "attention weights show the bias alone: the ratio of neighbours must be e^m."),
      .threshold = mark(
          "1e-12 relative for the slopes, 1e-9 for logarithms of weights that go down to 1e-14."),
      .expected = Verdict::conditional,
      .because = mark("The formula is right when the number of heads is a power of two. For other "
                      "numbers the authors' models take the slopes of the next smaller power p and "
                      "add every second slope of 2p, which the formula does not give."),
      .faults = {{"heads-from-zero", mark("heads are counted from 0 in the formula")},
                 {"not-relative", mark("differences are not relative to the slope")},
                 {"slopes-reversed", mark("the slopes are those of the heads in reversed order")},
                 {"powers-only", mark("8 heads stand for every other number")}},
      .run = run,
  };
}

}  // namespace heddle::lab::alibi_slopes
