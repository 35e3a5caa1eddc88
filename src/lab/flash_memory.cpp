// flash-memory: attention with and without the N × N matrix in memory.
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "heddle/memory.h"
#include "heddle/tape.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/attention/attention.h"
#include "ops/matmul/matmul.h"
#include "ops/random/random.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::flash_memory {

namespace {

constexpr std::int64_t kHeads = 2, kHeadWidth = 32;

using Attend = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

// As the formula has it: all scores, their softmax, the product with V.
Tensor dense(const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto by_head = [](const Tensor& x) { return ops::transpose(x, 1, 2); };  // [1, H, N, D]
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadWidth));
  const Tensor scores = ops::matmul(by_head(q), ops::transpose(by_head(k), 2, 3));  // [1, H, N, N]
  return by_head(ops::matmul(ops::softmax(ops::scale(scores, scale)), by_head(v)));
}

Tensor tiled(const Tensor& q, const Tensor& k, const Tensor& v) { return ops::attention(q, k, v); }

struct Inputs {
  Tensor q, k, v;  // [1, N, H, D]
};

Inputs inputs(std::int64_t n, Device device) {
  const auto random = [&](std::uint32_t stream) {
    return ops::random_normal({1, n, kHeads, kHeadWidth}, 0, 1, {7, 0, stream}, DType::f64, device);
  };
  return {random(50), random(51), random(52)};
}

// Most bytes held at once beyond the inputs. The meta device books the same bytes without having
// them, so it can go where no memory would do.
double peak_bytes(const Findings& f, Attend attend, std::int64_t n, Device device, bool backward) {
  if (f.fault("forward-only")) backward = false;
  Inputs in = inputs(n, device);
  for (Tensor* t : {&in.q, &in.k, &in.v}) t->set_requires_grad(backward);
  reset_peak_memory(device);
  const std::int64_t before = f.fault("inputs-counted") ? 0 : memory_use(device).live;
  if (backward) {
    const Tensor cotangent = inputs(n, device).q;
    Tape tape;
    const Tensor y = attend(in.q, in.k, in.v);
    tape.backward(std::span<const Tensor>(&y, 1), std::span<const Tensor>(&cotangent, 1));
  } else {
    attend(in.q, in.k, in.v);
  }
  const MemoryUse use = memory_use(device);
  return static_cast<double>(use.peak - before + use.thread_buffers_peak);
}

double flops(const Findings& f, std::int64_t n) {
  if (f.fault("work-of-one-size")) n = 1024;
  const Inputs in = inputs(n, Device::meta);
  const CostMeter meter;
  tiled(in.q, in.k, in.v);
  return meter.cost().flops;
}

constexpr std::size_t kCurves = 4;  // dense, tiled; both in training

struct Growth {
  std::vector<double> sizes, work, bytes[kCurves];
};

Growth measure_growth(const Findings& f) {
  const Attend flat = f.fault("dense-twice") ? dense : tiled;
  Growth g;
  for (std::int64_t n = 1024; n <= 65536; n *= 2) {
    g.sizes.push_back(static_cast<double>(n));
    g.work.push_back(flops(f, n));
    for (std::size_t i = 0; i < kCurves; ++i)
      g.bytes[i].push_back(peak_bytes(f, i % 2 == 0 ? dense : flat, n, Device::meta, i >= 2));
  }
  return g;
}

void draw(Findings& f, const Growth& g) {
  report::LineChart chart;
  chart.x_label = f.say({"tokens N", "词元数 N"});
  chart.y_label = f.say({"peak bytes", "峰值字节数"});
  chart.log_x = chart.log_y = true;
  const Text names[kCurves] = {{"dense", "稠密"},
                               {"tiled", "分块"},
                               {"dense, training", "稠密，训练"},
                               {"tiled, training", "分块，训练"}};
  for (std::size_t i = 0; i < kCurves; ++i) {
    report::Series series{f.say(names[i]), {}};
    for (std::size_t j = 0; j < g.sizes.size(); ++j)
      series.points.push_back({g.sizes[j], g.bytes[i][j]});
    chart.series.push_back(series);
  }
  f.figure(chart, {"Two heads of width 32 in float64. Shorter sequences were measured "
                   "in memory too; here the meta device books the same allocations.",
                   "两个宽 32 的头，float64。更小的 N 在真实内存中测过；更大的 N 由 meta "
                   "设备记录同样的分配。"});
}

// By hand: three matrices of H·N² numbers of 8 bytes live at once when the softmax is taken
// (scores, scaled scores, weights); tiles leave an output of N·H·D numbers and little else.
void control_bytes(Findings& f, const Growth& g) {
  const double n = g.sizes.back();
  const double matrices = 3.0 * kHeads * n * n * 8, output = n * kHeads * kHeadWidth * 8;
  f.control({"dense, N = 65536: bytes over those of three N × N matrices − 1",
             "稠密，N = 65536：内存与三个 N × N 矩阵之比 − 1"},
            std::abs(g.bytes[0].back() / matrices - 1), Relation::less, 0.01);
  f.control({"tiled, N = 65536: bytes over those of the output", "分块，N = 65536：内存与输出之比"},
            g.bytes[1].back() / output, Relation::less, 5);
  // Gradients of q, k and v, the output and its cotangent: five times the output at least.
  f.control({"tiled, training: bytes over those of the output", "分块，训练：内存与输出之比"},
            g.bytes[3].back() / output, Relation::greater, 5);
}

void run(Findings& f) {
  double difference = 0, other_values = INFINITY, meta_error = 0;
  for (const std::int64_t n : {64, 200, 512}) {
    const Inputs in = inputs(n, Device::cpu);
    difference =
        std::max(difference, largest_difference(dense(in.q, in.k, in.v), tiled(in.q, in.k, in.v)));
    other_values = std::min(other_values,
                            largest_difference(dense(in.q, in.k, in.k), tiled(in.q, in.k, in.v)));
    for (const Attend attend : {dense, tiled})
      for (const bool backward : {false, true})
        meta_error =
            std::max(meta_error, std::abs(peak_bytes(f, attend, n, Device::cpu, backward) -
                                          peak_bytes(f, attend, n, Device::meta, backward)));
  }
  f.number("difference", difference,
           {"dense output − tiled output, largest", "稠密输出 − 分块输出的最大值"});
  f.number("meta_error", meta_error,
           {"peak bytes in memory − by the meta device", "实测峰值字节 − meta 设备给出的字节"},
           "bytes");
  const Growth g = measure_growth(f);
  const double dense_exponent = fitted_exponent(g.sizes, g.bytes[0]);
  const double tiled_exponent =
      std::max(fitted_exponent(g.sizes, g.bytes[1]), fitted_exponent(g.sizes, g.bytes[3]));
  const double work_exponent = fitted_exponent(g.sizes, g.work);
  f.number("dense_exponent", dense_exponent,
           {"dense bytes ~ N to the power of", "稠密内存 ~ N 的幂次"});
  f.number("tiled_exponent", tiled_exponent,
           {"tiled bytes ~ N to the power of (training too)", "分块内存 ~ N 的幂次（含训练）"});
  f.number("work_exponent", work_exponent, {"arithmetic ~ N to the power of", "运算量 ~ N 的幂次"});
  f.number("dense_65536", g.bytes[0].back(), {"dense, N = 65536", "稠密，N = 65536"}, "bytes");
  f.number("tiled_65536", g.bytes[1].back(), {"tiled, N = 65536", "分块，N = 65536"}, "bytes");
  f.number("tiled_training_65536", g.bytes[3].back(), {"tiled, training", "分块，训练"}, "bytes");
  draw(f, g);
  control_bytes(f, g);
  f.control({"with other values they differ by", "换成别的值时输出之差"}, other_values,
            Relation::greater, 0.1);
  const bool same = f.check({"outputs differ by", "输出之差"}, difference, Relation::less, 1e-12);
  f.control({"meta and memory differ by (bytes)", "meta 与实测之差（字节）"}, meta_error,
            Relation::equal, 0);
  const bool square =
      f.check({"dense exponent", "稠密的幂次"}, dense_exponent, Relation::greater, 1.9);
  const bool linear =
      f.check({"tiled exponent", "分块的幂次"}, tiled_exponent, Relation::less, 1.1);
  const bool quadratic = f.check({"exponent of the arithmetic", "运算量的幂次"}, work_exponent,
                                 Relation::greater, 1.9);
  f.verdict(same && square && linear && quadratic ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "flash-memory",
      .topic = topics::cost,
      .title = {"Attention without the N × N matrix", "不存 N × N 矩阵的注意力"},
      .claim = {"Plain attention needs O(N²) memory. Computed tile by tile, with tiles thrown away "
                "at once, it needs O(N), the result is the same and the arithmetic stays O(N²).",
                "普通注意力需要 O(N²) 内存；像 Flash Attention 那样分块计算、用完即弃，只需 O(N)，"
                "结果相同，运算量仍是 O(N²)。"},
      .source = {"Document 002, four matrix multiplies and Flash Attention.",
                 "文档 002「Self-Attention is Four Matrix Multiplies」与 Flash Attention。"},
      .method = {"Heddle's tiled kernel against the formula written with Heddle's products: "
                 "outputs in float64, and the "
                 "most bytes that tensors held at once, in a forward pass and in training. Up to "
                 "N = 512 both in memory and on the meta device, which books allocations without "
                 "making them; beyond on the meta device.",
                 "将 Heddle 的分块核与按公式逐步相乘的写法比较：float64 "
                 "输出，以及张量同时占用的最大字节数，"
                 "前向与训练各一次。N ≤ 512 时在内存和 meta 设备（只记账、不分配）上都测；更大的 N "
                 "用 meta 设备。"},
      .threshold = {"Outputs equal to 1e-12, both ledgers equal to the byte, exponents above 1.9 "
                    "and below 1.1 between N = 1024 and 65536.",
                    "输出相差小于 1e-12；两份账目逐字节相等；N 从 1024 到 65536 的幂次分别大于 1.9 "
                    "和小于 1.1。"},
      .expected = Verdict::holds,
      .because =
          {"A softmax can be summed up piece by piece with a running maximum, so a row needs "
           "only its output, its maximum and its sum. The backward pass makes the tiles "
           "again. Arithmetic is not saved: only memory and its traffic are.",
           "softmax 可以边走边累加（维护当前最大值与总和），因此每行只需保存输出、最大值和总和；"
           "反向时再把小块重算一遍。省下的是内存和访存，而不是运算量。"},
      .faults = {{"dense-twice",
                  {"the tiled bytes are those of the dense formula",
                   "「分块」的内存其实是稠密公式的"}},
                 {"forward-only",
                  {"training is measured without its backward pass", "训练只测了前向"}},
                 {"inputs-counted", {"the inputs are counted as well", "把输入也算进去了"}},
                 {"work-of-one-size",
                  {"the arithmetic is that of N = 1024 for every N",
                   "每个 N 的运算量都取 N = 1024 时的"}}},
      .run = run,
  };
}

}  // namespace heddle::lab::flash_memory
