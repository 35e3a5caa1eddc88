// layer-vs-batch-norm: over which axis, and who depends on whom?
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::layer_vs_batch_norm {

namespace {

constexpr std::int64_t kWidth = 32, kMost = 1024;
constexpr double kEpsilon = 1e-8;

// x: [samples, features]
Tensor layer_norm(const Tensor& x) { return ops::layer_norm(x, {}, {}, kEpsilon); }

// The same formula over the other axis: each feature over all samples of the batch.
Tensor batch_norm(const Tensor& x) {
  return ops::transpose(ops::layer_norm(ops::transpose(x, 0, 1), {}, {}, kEpsilon), 0, 1);
}

double largest_mean(const Tensor& x, int axis) { return largest(ops::mean(x, axis)); }

Tensor sample() { return normal({1, kWidth}, 90); }

// How far the result for one sample moves when the rest of its batch is drawn anew: root mean
// square over 24 draws.
template <class Norm>
double movement(const Findings& f, const Norm& norm, std::int64_t batch) {
  constexpr int draws = 24;
  const bool same_company = f.fault("same-company");
  const std::int64_t row = f.fault("companion-for-sample") ? 1 : 0;
  if (f.fault("batch-of-two")) batch = 2;
  std::vector<Tensor> results;
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    const std::uint32_t stream = same_company ? 100 : 100 + draw;
    const std::vector<Tensor> parts = {sample(), normal({batch - 1, kWidth}, stream, 1.5)};
    results.push_back(ops::slice(norm(ops::concat(parts, 0)), 0, row, row + 1));
  }
  const Tensor all = ops::concat(results, 0);  // [draws, features]
  const Tensor off = ops::sub(all, ops::mean(all, 0, true));
  return std::sqrt(ops::mean_all(ops::square(off)).item());
}

struct Movements {
  double layer = 0;       // layer norm, any batch
  double batch_of_2 = 0;  // batch norm
  double exponent = 0;    // of batch norm's movement over the batch size
};

Movements measure_movements(Findings& f) {
  report::LineChart chart;
  chart.x_label = tr("batch size");
  chart.y_label = tr("movement of one sample's result");
  chart.log_x = true;
  chart.series = {{tr("batch norm"), {}}, {tr("layer norm"), {}}};
  Movements most;
  std::vector<double> sizes, moves;
  for (std::int64_t batch = 2; batch <= kMost; batch *= 2) {
    const auto size = static_cast<double>(batch);
    const double by_batch = movement(f, batch_norm, batch),
                 by_layer = movement(f, layer_norm, batch);
    most.layer = std::max(most.layer, by_layer);
    chart.series[0].points.push_back({size, by_batch});
    chart.series[1].points.push_back({size, by_layer});
    if (batch < 16) continue;
    sizes.push_back(size);
    moves.push_back(by_batch);
  }
  f.number("moves_2", chart.series[0].points.front().y,
           tr("batch norm, batch of 2: one sample's result moves by"));
  f.number("moves_1024", moves.back(), tr("the same with a batch of 1024"));
  most.exponent = fitted_exponent(sizes, moves);
  f.number("exponent", most.exponent, tr("movement ~ batch size to the power of"));
  f.number("layer_moves", most.layer, tr("layer norm: one sample's result moves by"));
  f.figure(chart,
           tr("One sample, the rest of its batch drawn 24 times. Under batch norm its result "
              "depends on its company, less in large batches; under layer norm not at all."));
  most.batch_of_2 = chart.series[0].points.front().y;
  return most;
}

struct Means {
  double layer_over_features, layer_over_batch, batch_over_features, batch_over_batch;
};

Means means_of(const Findings& f, const Tensor& x) {
  const int features = f.fault("axes-swapped") ? 0 : 1, batch = 1 - features;
  return {largest_mean(layer_norm(x), features), largest_mean(layer_norm(x), batch),
          largest_mean(batch_norm(x), features), largest_mean(batch_norm(x), batch)};
}

void run(Findings& f) {
  const Means means = means_of(f, ops::add(normal({16, kWidth}, 91, 2), 0.7));
  f.number("layer_over_features", means.layer_over_features,
           tr("layer norm: largest mean of a sample over its features"));
  f.number("layer_over_batch", means.layer_over_batch,
           tr("layer norm: largest mean of a feature over the batch"));
  f.number("batch_over_features", means.batch_over_features,
           tr("batch norm: largest mean of a sample over its features"));
  f.number("batch_over_batch", means.batch_over_batch,
           tr("batch norm: largest mean of a feature over the batch"));
  const double alone_layer = largest(layer_norm(sample())),
               alone_batch = largest(batch_norm(sample()));
  f.number("alone_layer", alone_layer, tr("batch of one: largest result of layer norm"));
  f.number("alone_batch", alone_batch, tr("batch of one: largest result of batch norm"));
  const Movements moves = measure_movements(f);
  f.control(tr("over the other axis means are not 0: the smaller of both"),
            std::min(means.layer_over_batch, means.batch_over_features), Relation::greater, 0.1);
  f.control(tr("batch norm's movement ~ batch size to the power of −½, up to"),
            std::abs(moves.exponent + 0.5), Relation::less, 0.05);
  f.control(tr("layer norm leaves of a batch of one"), alone_layer, Relation::greater, 1);
  const bool axis =
      f.check(tr("layer norm: mean of a sample"), means.layer_over_features, Relation::less, 1e-12);
  const bool other_axis =
      f.check(tr("batch norm: mean of a feature"), means.batch_over_batch, Relation::less, 1e-12);
  const bool alone =
      f.check(tr("layer norm moves with the batch by"), moves.layer, Relation::less, 1e-12);
  const bool company =
      f.check(tr("batch norm in a batch of 2 moves by"), moves.batch_of_2, Relation::greater, 0.1);
  const bool nothing =
      f.check(tr("batch norm leaves of a batch of one"), alone_batch, Relation::less, 1e-12);
  f.verdict(axis && other_axis && alone && company && nothing ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "layer-vs-batch-norm",
      .topic = topics::building_blocks,
      .title = mark("Layer norm and batch norm"),
      .claim = mark("Layer norm works on the features of one sample, batch norm on one feature of "
                    "the whole batch; so layer norm suits sequences better, whose batches may be "
                    "small and lengths unequal."),
      .formula = "y = γ frac{x - μ}{sqrt{σ^2 + ε}} + β",
      .source = mark("Document 004, layer normalization."),
      .method = mark(
          "Heddle's layer norm in float64, and batch norm as the same formula on the transposed "
          "batch (with the batch's own statistics, as in training): means over both axes, a batch "
          "of one, and how far one sample's result moves when its companions are drawn anew."),
      .threshold = mark("1e-12 for what must be zero or must not move; 0.1 for what moves, results "
                        "being of size 1."),
      .expected = Verdict::holds,
      .because =
          mark("Batch norm's mean and deviation come from the companions, with an error that falls "
               "as one over the root of the batch; of a batch of one nothing is left. Layer norm "
               "sees one vector only. (The document's last line calls the vector \"feature\" and "
               "its entries \"dimensions\": read so, it says the same.)"),
      .faults = {{"axes-swapped", mark("means are taken over the other axis")},
                 {"same-company", mark("the companions are never drawn anew")},
                 {"companion-for-sample",
                  mark("a companion's result is followed, not the sample's")},
                 {"batch-of-two", mark("every batch has two samples")}},
      .run = run,
  };
}

}  // namespace heddle::lab::layer_vs_batch_norm
