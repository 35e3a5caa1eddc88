// layer-vs-batch-norm: over which axis, and who depends on whom?
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/layer_norm/layer_norm.h"
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
  chart.x_label = f.say({"batch size", "批大小"});
  chart.y_label = f.say({"movement of one sample's result", "同一样本结果的波动"});
  chart.log_x = true;
  chart.series = {{f.say({"batch norm", "批归一化"}), {}}, {f.say({"layer norm", "层归一化"}), {}}};
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
           {"batch norm, batch of 2: one sample's result moves by",
            "批归一化，批大小 2：同一样本结果的波动"});
  f.number("moves_1024", moves.back(),
           {"the same with a batch of 1024", "批大小 1024 时的同一波动"});
  most.exponent = fitted_exponent(sizes, moves);
  f.number("exponent", most.exponent,
           {"movement ~ batch size to the power of", "波动 ~ 批大小的幂次"});
  f.number("layer_moves", most.layer,
           {"layer norm: one sample's result moves by", "层归一化：同一样本结果的波动"});
  f.figure(chart, {"One sample, the rest of its batch drawn 24 times. Under batch norm its result "
                   "depends on its company, less in large batches; under layer norm not at all.",
                   "固定一个样本，同批的其他样本重抽 24 "
                   "次。批归一化的结果取决于「同伴」，批越大影响越小；层归一化完全不受影响。"});
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
  const Means means = means_of(f, ops::shift(normal({16, kWidth}, 91, 2), 0.7));
  f.number("layer_over_features", means.layer_over_features,
           {"layer norm: largest mean of a sample over its features",
            "层归一化：单个样本在各特征上均值的最大值"});
  f.number("layer_over_batch", means.layer_over_batch,
           {"layer norm: largest mean of a feature over the batch",
            "层归一化：单个特征在整批上均值的最大值"});
  f.number("batch_over_features", means.batch_over_features,
           {"batch norm: largest mean of a sample over its features",
            "批归一化：单个样本在各特征上均值的最大值"});
  f.number("batch_over_batch", means.batch_over_batch,
           {"batch norm: largest mean of a feature over the batch",
            "批归一化：单个特征在整批上均值的最大值"});
  const double alone_layer = largest(layer_norm(sample())),
               alone_batch = largest(batch_norm(sample()));
  f.number("alone_layer", alone_layer,
           {"batch of one: largest result of layer norm", "批大小为 1：层归一化结果的最大值"});
  f.number("alone_batch", alone_batch,
           {"batch of one: largest result of batch norm", "批大小为 1：批归一化结果的最大值"});
  const Movements moves = measure_movements(f);
  f.control({"over the other axis means are not 0: the smaller of both",
             "沿另一个轴均值不为 0：两者中较小的"},
            std::min(means.layer_over_batch, means.batch_over_features), Relation::greater, 0.1);
  f.control({"batch norm's movement ~ batch size to the power of −½, up to",
             "批归一化波动的幂次与 −½ 之差"},
            std::abs(moves.exponent + 0.5), Relation::less, 0.05);
  f.control({"layer norm leaves of a batch of one", "批大小为 1 时层归一化留下的结果"}, alone_layer,
            Relation::greater, 1);
  const bool axis = f.check({"layer norm: mean of a sample", "层归一化：单个样本的均值"},
                            means.layer_over_features, Relation::less, 1e-12);
  const bool other_axis = f.check({"batch norm: mean of a feature", "批归一化：单个特征的均值"},
                                  means.batch_over_batch, Relation::less, 1e-12);
  const bool alone = f.check({"layer norm moves with the batch by", "层归一化随同批样本的变化"},
                             moves.layer, Relation::less, 1e-12);
  const bool company = f.check({"batch norm in a batch of 2 moves by", "批大小 2 时批归一化的变化"},
                               moves.batch_of_2, Relation::greater, 0.1);
  const bool nothing =
      f.check({"batch norm leaves of a batch of one", "批大小为 1 时批归一化留下的结果"},
              alone_batch, Relation::less, 1e-12);
  f.verdict(axis && other_axis && alone && company && nothing ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "layer-vs-batch-norm",
      .topic = topics::building_blocks,
      .title = {"Layer norm and batch norm", "层归一化与批归一化"},
      .claim =
          {"Layer norm works on the features of one sample, batch norm on one feature of the whole "
           "batch; "
           "so layer norm suits sequences better, whose batches may be small and lengths unequal.",
           "层归一化作用于单个样本内部的所有特征，批归一化作用于整批样本的同一特征；"
           "因此在批很小、长度不一的序列任务中层归一化更合适。"},
      .source = {"Document 004, layer normalization.", "文档 004「Layer Normalization」。"},
      .method =
          {"Heddle's layer norm in float64, and batch norm as the same formula on the transposed "
           "batch (with the batch's own statistics, as in training): means over both axes, a "
           "batch of one, and how far one sample's result moves when its companions are drawn "
           "anew.",
           "用 Heddle 的 float64 "
           "层归一化；批归一化即把同一公式用于转置后的批（与训练时一样用本批统计量）：比较两个轴上"
           "的均值、"
           "批大小为 1 的情形，以及更换同批样本时某个样本结果的波动。"},
      .threshold =
          {"1e-12 for what must be zero or must not move; 0.1 for what moves, results being "
           "of size 1.",
           "应为零或不变的量取 1e-12；会变的量取 0.1，而结果的量级为 1。"},
      .expected = Verdict::holds,
      .because = {"Batch norm's mean and deviation come from the companions, with an error that "
                  "falls as one over "
                  "the root of the batch; of a batch of one nothing is left. Layer norm sees one "
                  "vector only. (The document's last line calls the vector \"feature\" and its "
                  "entries \"dimensions\": read so, it says the same.)",
                  "批归一化的均值和标准差来自同批样本，误差与批大小的平方根成反比；批大小为 1 "
                  "时什么都不剩。"
                  "层归一化只看一个向量。（文档最后一句把向量叫「feature」、把分量叫「dimension」，"
                  "这样读意思相同。）"},
      .faults = {{"axes-swapped", {"means are taken over the other axis", "均值沿另一个轴计算"}},
                 {"same-company", {"the companions are never drawn anew", "同批样本始终没有重抽"}},
                 {"companion-for-sample",
                  {"a companion's result is followed, not the sample's",
                   "跟踪的是同伴而不是该样本的结果"}},
                 {"batch-of-two", {"every batch has two samples", "每一批都只有两个样本"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::layer_vs_batch_norm
