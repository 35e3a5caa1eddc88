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
  chart.x_label = tr("tokens N");
  chart.y_label = tr("peak bytes");
  chart.log_x = chart.log_y = true;
  const std::string names[kCurves] = {tr("dense"), tr("tiled"), tr("dense, training"),
                                      tr("tiled, training")};
  for (std::size_t i = 0; i < kCurves; ++i) {
    report::Series series{names[i], {}};
    for (std::size_t j = 0; j < g.sizes.size(); ++j)
      series.points.push_back({g.sizes[j], g.bytes[i][j]});
    chart.series.push_back(series);
  }
  f.figure(chart, tr("Two heads of width 32 in float64. Shorter sequences were measured in memory "
                     "too; here the meta device books the same allocations."));
}

// By hand: three matrices of H·N² numbers of 8 bytes live at once when the softmax is taken
// (scores, scaled scores, weights); tiles leave an output of N·H·D numbers and little else.
void control_bytes(Findings& f, const Growth& g) {
  const double n = g.sizes.back();
  const double matrices = 3.0 * kHeads * n * n * 8, output = n * kHeads * kHeadWidth * 8;
  f.control(tr("dense, N = 65536: bytes over those of three N × N matrices − 1"),
            std::abs(g.bytes[0].back() / matrices - 1), Relation::less, 0.01);
  f.control(tr("tiled, N = 65536: bytes over those of the output"), g.bytes[1].back() / output,
            Relation::less, 5);
  // Gradients of q, k and v, the output and its cotangent: five times the output at least.
  f.control(tr("tiled, training: bytes over those of the output"), g.bytes[3].back() / output,
            Relation::greater, 5);
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
  f.number("difference", difference, tr("dense output − tiled output, largest"));
  f.number("meta_error", meta_error, tr("peak bytes in memory − by the meta device"),
           mark("bytes"));
  const Growth g = measure_growth(f);
  const double dense_exponent = fitted_exponent(g.sizes, g.bytes[0]);
  const double tiled_exponent =
      std::max(fitted_exponent(g.sizes, g.bytes[1]), fitted_exponent(g.sizes, g.bytes[3]));
  const double work_exponent = fitted_exponent(g.sizes, g.work);
  f.number("dense_exponent", dense_exponent, tr("dense bytes ~ N to the power of"));
  f.number("tiled_exponent", tiled_exponent, tr("tiled bytes ~ N to the power of (training too)"));
  f.number("work_exponent", work_exponent, tr("arithmetic ~ N to the power of"));
  f.number("dense_65536", g.bytes[0].back(), tr("dense, N = 65536"), mark("bytes"));
  f.number("tiled_65536", g.bytes[1].back(), tr("tiled, N = 65536"), mark("bytes"));
  f.number("tiled_training_65536", g.bytes[3].back(), tr("tiled, training"), mark("bytes"));
  draw(f, g);
  control_bytes(f, g);
  f.control(tr("with other values they differ by"), other_values, Relation::greater, 0.1);
  const bool same = f.check(tr("outputs differ by"), difference, Relation::less, 1e-12);
  f.control(tr("meta and memory differ by (bytes)"), meta_error, Relation::equal, 0);
  const bool square = f.check(tr("dense exponent"), dense_exponent, Relation::greater, 1.9);
  const bool linear = f.check(tr("tiled exponent"), tiled_exponent, Relation::less, 1.1);
  const bool quadratic =
      f.check(tr("exponent of the arithmetic"), work_exponent, Relation::greater, 1.9);
  f.verdict(same && square && linear && quadratic ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "flash-memory",
      .topic = topics::cost,
      .title = mark("Attention without the N × N matrix"),
      .claim =
          mark("Plain attention needs O(N²) memory. Computed tile by tile, with tiles thrown away "
               "at once, it needs O(N), the result is the same and the arithmetic stays O(N²)."),
      .formula = "y_i = frac{sum_j e^{s_{i j} - m_i} v_j}{sum_j e^{s_{i j} - m_i}}",
      .source = mark("Document 002, four matrix multiplies and Flash Attention."),
      .method =
          mark("Heddle's tiled kernel against the formula written with Heddle's products: outputs "
               "in float64, and the most bytes that tensors held at once, in a forward pass and in "
               "training. Up to N = 512 both in memory and on the meta device, which books "
               "allocations without making them; beyond on the meta device."),
      .threshold = mark("Outputs equal to 1e-12, both ledgers equal to the byte, exponents above "
                        "1.9 and below 1.1 between N = 1024 and 65536."),
      .expected = Verdict::holds,
      .because = mark("A softmax can be summed up piece by piece with a running maximum, so a row "
                      "needs only its output, its maximum and its sum. The backward pass makes the "
                      "tiles again. Arithmetic is not saved: only memory and its traffic are."),
      .faults = {{"dense-twice", mark("the tiled bytes are those of the dense formula")},
                 {"forward-only", mark("training is measured without its backward pass")},
                 {"inputs-counted", mark("the inputs are counted as well")},
                 {"work-of-one-size", mark("the arithmetic is that of N = 1024 for every N")}},
      .run = run,
  };
}

}  // namespace heddle::lab::flash_memory
