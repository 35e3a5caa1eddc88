// attention-flops: the four matrix products of self-attention, counted.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/cost.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/matmul/matmul.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::attention_flops {

namespace {

constexpr std::int64_t kWidth = 128, kHeads = 4, kHeadWidth = kWidth / kHeads;
constexpr std::size_t kProducts = 4;

// The arithmetic of each product: projections in, scores, weighted sum, projection out.
using Work = std::array<double, kProducts>;

double total(const Work& work) { return work[0] + work[1] + work[2] + work[3]; }

double flops_of(const std::function<void()>& call) {
  const CostMeter meter;
  call();
  return meter.cost().flops;
}

// [1, N, n·D] -> [n, N, D]
Tensor by_head(const Tensor& x) {
  return ops::transpose(ops::reshape(x, {x.size(1), kHeads, kHeadWidth}), 0, 1);
}

// Self-attention as four products of Heddle's matrix kernels and a softmax.
Tensor four_products(const Findings& f, const nn::AttentionParameters& p, const Tensor& x,
                     Work& work) {
  const std::vector<Tensor> weights = {p.q, p.k, p.v};
  const Tensor all = ops::concat(weights, 0);  // [3C, C]
  Tensor qkv, scores, mixed, y;
  work[0] = flops_of([&] { qkv = ops::linear(x, all); });
  const std::vector<std::int64_t> sizes(3, kWidth);
  const std::vector<Tensor> parts = ops::split(qkv, sizes, 2);
  const Tensor q = by_head(parts[0]), k = by_head(parts[1]), v = by_head(parts[2]);
  work[1] = flops_of([&] { scores = ops::matmul(q, ops::transpose(k, 1, 2)); });
  const std::int64_t width = f.fault("scale-of-all-heads") ? kWidth : kHeadWidth;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const Tensor attention = ops::softmax(ops::scale(scores, scale));  // [H, N, N]
  work[2] = flops_of([&] { mixed = ops::matmul(attention, v); });
  const Tensor joined = ops::reshape(ops::transpose(mixed, 0, 1), {1, x.size(1), kWidth});
  work[3] = flops_of([&] { y = ops::linear(joined, p.out); });
  return y;
}

nn::Attention layer(Device device) {
  nn::ParameterStore store({.seed = 5, .dtype = DType::f64, .device = device});
  return {{.width = kWidth, .heads = kHeads}, store.root()};
}

double seconds_of_layer(const Findings& f, std::int64_t n) {
  if (f.fault("one-size-timed")) n = 256;
  nn::ParameterStore store({.seed = 5});
  const nn::Attention attention({.width = kWidth, .heads = kHeads}, store.root());
  const Tensor tokens = ops::cast(normal({1, n, kWidth}, 61), DType::f32);
  return seconds_of([&] { attention.forward(tokens); }, 8);
}

// What the four products cost at each N, on the meta device: nothing is computed.
struct Counts {
  std::vector<double> tokens;
  std::vector<Work> work;
  double formula_error = 0;  // relative to 8·N·C² + 4·N²·C
  double crossover = 0;      // first N at which the products between tokens are the larger half

  // Of the total work over N, from `first` to `last`.
  double exponent(double first, double last) const {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < first || tokens[i] > last) continue;
      x.push_back(tokens[i]);
      y.push_back(total(work[i]));
    }
    return fitted_exponent(x, y);
  }
};

Counts count_products(const Findings& f) {
  const bool scores_left_out = f.fault("scores-not-counted");
  const nn::Attention meta = layer(Device::meta);
  Counts c;
  for (std::int64_t n = 16; n <= 16384; n *= 2) {
    Work work{};
    four_products(f, meta.parameters(), Tensor::empty({1, n, kWidth}, DType::f64, Device::meta),
                  work);
    if (scores_left_out) work[1] = 0;
    const auto count = static_cast<double>(n), width = static_cast<double>(kWidth);
    const double formula = 8 * count * width * width + 4 * count * count * width;
    c.formula_error = std::max(c.formula_error, std::abs(total(work) - formula) / formula);
    if (c.crossover == 0 && work[1] + work[2] >= work[0] + work[3]) c.crossover = count;
    c.tokens.push_back(count);
    c.work.push_back(work);
  }
  return c;
}

void draw(Findings& f, const Counts& counts) {
  report::LineChart chart;
  chart.x_label = f.say({"tokens N", "词元数 N"});
  chart.y_label = f.say({"floating-point operations", "浮点运算次数"});
  chart.log_x = chart.log_y = true;
  const Text names[] = {{"projections to Q, K, V", "投影出 Q、K、V"},
                        {"Q·Kᵀ", "Q·Kᵀ"},
                        {"weights · V", "权重 · V"},
                        {"projection out", "输出投影"}};
  for (std::size_t i = 0; i < kProducts; ++i) {
    report::Series series{f.say(names[i]), {}};
    for (std::size_t j = 0; j < counts.tokens.size(); ++j)
      series.points.push_back({counts.tokens[j], counts.work[j][i]});
    chart.series.push_back(series);
  }
  f.figure(chart,
           {"Width 128. Projections grow with N, the two products between tokens with N² (their "
            "lines coincide); they catch up at N = 2C.",
            "宽度 128。投影随 N 增长，词元之间的两个乘积随 N² 增长（两条线重合），在 N = 2C "
            "处追上投影。"});
}

void run(Findings& f) {
  // That these four products are the layer.
  const nn::Attention here = layer(Device::cpu);
  const Tensor x = normal({1, 96, kWidth}, 60);
  Work work{};
  const double difference =
      largest_difference(here.forward(x), four_products(f, here.parameters(), x, work));
  const Counts counts = count_products(f);
  const double long_exponent = counts.exponent(2048, 16384);
  const double short_exponent = f.fault("long-for-short") ? long_exponent : counts.exponent(16, 64);
  f.number("difference", difference,
           {"Heddle's layer − four products, N = 96", "Heddle 的层 − 四次乘积（N = 96）"});
  f.number("formula_error", counts.formula_error,
           {"counted − (8·N·C² + 4·N²·C), relative", "计数 − (8·N·C² + 4·N²·C)，相对误差"});
  f.number("short_exponent", short_exponent,
           {"N = 16 to 64: work ~ N to the power of", "N = 16 到 64：运算量 ~ N 的幂次"});
  f.number("long_exponent", long_exponent,
           {"N = 2048 to 16384: work ~ N to the power of", "N = 2048 到 16384：运算量 ~ N 的幂次"});
  f.number("crossover", counts.crossover,
           {"N at which the N² products reach the others (C = 128)",
            "N² 的两个乘积赶上其余乘积的 N（C = 128）"});
  const double seconds_256 = seconds_of_layer(f, 256), seconds_2048 = seconds_of_layer(f, 2048);
  f.number("seconds_256", seconds_256,
           {"the layer in float32, N = 256", "该层（float32），N = 256"}, "s");
  f.number("seconds_2048", seconds_2048,
           {"the layer in float32, N = 2048", "该层（float32），N = 2048"}, "s");
  draw(f, counts);
  f.control({"N at which the N² products reach the others: 2C", "N² 的乘积赶上其余乘积的 N：2C"},
            counts.crossover, Relation::equal, 2 * kWidth);
  f.control({"exponent for short sequences", "短序列的幂次"}, short_exponent, Relation::less, 1.3);
  f.control({"seconds at N = 2048 over those at 256", "N = 2048 与 256 的时间之比"},
            seconds_2048 / seconds_256, Relation::greater, 4);
  const bool same = f.check({"layer and four products differ by", "层与四次乘积之差"}, difference,
                            Relation::less, 1e-12);
  const bool counted = f.check({"the count differs from the formula by", "计数与公式之差"},
                               counts.formula_error, Relation::less, 1e-12);
  const bool square = f.check({"exponent for long sequences", "长序列的幂次"}, long_exponent,
                              Relation::greater, 1.8);
  f.verdict(same && counted && square ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "attention-flops",
      .topic = topics::cost,
      .title = {"Four matrix products", "四次矩阵乘法"},
      .claim = {"Self-attention is four matrix products, and its compute grows as O(N²) with the "
                "number of vectors.",
                "自注意力就是四次矩阵乘法，计算量随向量个数 N 以 O(N²) 增长。"},
      .source = {"Document 002, \"Self-Attention is Four Matrix Multiplies!\"",
                 "文档 002「Self-Attention is Four Matrix Multiplies!」。"},
      .method =
          {"The layer written as four products (Q, K and V in one), a softmax and nothing "
           "else, against Heddle's layer; the arithmetic of each product by Heddle's meter "
           "for N from 16 to 16384 at width 128; the layer's time at N = 256 and 2048.",
           "把该层写成四次乘积（Q、K、V 合为一次）加一个 softmax，与 Heddle 的层比较；用 Heddle "
           "的计数器统计"
           "宽 128、N 从 16 到 16384 时每次乘积的运算量；再测该层在 N = 256 和 2048 时的用时。"},
      .threshold =
          {"Outputs equal to 1e-12, counts equal to 8·N·C² + 4·N²·C, exponent of long sequences "
           "above 1.8. Time is shown and decides nothing: it depends on the machine.",
           "输出相差小于 1e-12；计数等于 8·N·C² + 4·N²·C；长序列的幂次大于 1.8。"
           "时间只作展示、不参与判定，因为取决于机器。"},
      .expected = Verdict::holds,
      .because =
          {"It is true for long sequences. Below N = 2C, which is where many models work, the "
           "projections cost more than the products between tokens, and the compute grows "
           "almost linearly.",
           "对长序列成立。但在 N < 2C "
           "时（许多模型正是如此），投影比词元之间的乘积更费，计算量几乎是线性增长的。"},
      .faults = {{"scale-of-all-heads",
                  {"scores are divided by the root of the whole width",
                   "得分除以整个宽度（而不是头宽）的平方根"}},
                 {"scores-not-counted", {"the product Q·Kᵀ is not counted", "没有计入 Q·Kᵀ"}},
                 {"long-for-short",
                  {"the exponent of long sequences stands for the short ones",
                   "短序列的幂次取了长序列的"}},
                 {"one-size-timed", {"N = 256 is timed twice", "两次计时都是 N = 256"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::attention_flops
