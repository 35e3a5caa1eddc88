// window-cost: time and memory of sliding-window attention, dense and banded.
#include <algorithm>
#include <cmath>

#include "heddle/cost.h"
#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/attention/attention.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/random/random.h"
#include "ops/softmax/softmax.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::window_cost {

namespace {

// Lengths at which both ways are measured.
const std::vector<std::int64_t> kBothLengths = {256, 512, 1024, 2048};
constexpr std::int64_t kWidth = 32, kWindow = 128;  // w; a token sees w/2 + 1 tokens

struct Inputs {
  Tensor q, k, v;  // [1, N, 1, D], f32 as in training
};

Inputs inputs(std::int64_t n) {
  const auto random = [n](std::uint32_t stream) {
    return ops::random_normal({1, n, 1, kWidth}, 0, 1, {7, 0, stream}, DType::f32);
  };
  return {random(1), random(2), random(3)};
}

// −∞ outside of the window: what the formula adds to the scores. [N, N]
Tensor mask(std::int64_t n, std::int64_t window) {
  Tensor m = Tensor::full({n, n}, -INFINITY, DType::f32);
  float* data = m.mutable_data<float>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = std::max<std::int64_t>(0, i - window / 2); j <= i; ++j)
      data[i * n + j] = 0;
  return m;
}

Tensor dense(const Inputs& in, std::int64_t window) {  // [N, D]
  const std::int64_t n = in.q.size(1);
  const auto flat = [n](const Tensor& t) { return ops::reshape(t, {n, kWidth}); };
  const Tensor scores = ops::scale(ops::matmul(flat(in.q), ops::transpose(flat(in.k), 0, 1)),
                                   1 / std::sqrt(double{kWidth}));
  return ops::matmul(ops::softmax(ops::add(scores, mask(n, window))), flat(in.v));
}

Tensor banded(const Inputs& in, std::int64_t window) {  // [N, D]
  ops::AttentionOptions options;
  options.mask.causal = true;
  options.mask.look_back = window / 2;
  return ops::reshape(ops::attention(in.q, in.k, in.v, options), {in.q.size(1), kWidth});
}

// Faults: ways that look banded and are not.
Tensor without_window(const Inputs& in, std::int64_t /*window*/) {
  return banded(in, 2 * in.q.size(1));
}
Tensor with_twice_the_window(const Inputs& in, std::int64_t window) {
  return banded(in, 2 * window);
}
Tensor nothing(const Inputs& in, std::int64_t /*window*/) { return in.v; }

// One of the two over several sizes.
struct Series {
  std::vector<double> sizes, seconds, bytes, flops;

  double exponent(const std::vector<double>& of) const { return fitted_exponent(sizes, of); }
};

using Way = Tensor (*)(const Inputs&, std::int64_t);

// A point of a series.
struct Point {
  std::int64_t size, window;
  Inputs in;
};

// Times in rounds over all points: a machine that slows down for a while slows them all.
Series measure(const std::vector<Point>& points, Way way) {
  constexpr int kRounds = 5;
  Series s;
  for (const auto& [size, window, in] : points) {
    const auto call = [&] { way(in, window); };
    s.sizes.push_back(static_cast<double>(size));
    s.bytes.push_back(static_cast<double>(peak_bytes_of(call)));
    const CostMeter meter;
    call();
    s.flops.push_back(meter.cost().flops);
    s.seconds.push_back(cpu_seconds_of(call, 1));
  }
  for (int round = 1; round < kRounds; ++round)
    for (std::size_t i = 0; i < points.size(); ++i)
      s.seconds[i] =
          std::min(s.seconds[i], cpu_seconds_of([&] { way(points[i].in, points[i].window); }, 1));
  return s;
}

Series against_n(Way way, const std::vector<std::int64_t>& lengths) {
  std::vector<Point> points;
  points.reserve(lengths.size());
  for (const std::int64_t n : lengths) points.push_back({n, kWindow, inputs(n)});
  return measure(points, way);
}

Series against_w(Way way) {
  const Inputs in = inputs(16384);
  std::vector<Point> points;
  for (const std::int64_t w : {1024, 2048, 4096, 8192}) points.push_back({w, w, in});
  return measure(points, way);
}

report::Series line(const std::string& name, const Series& s, const std::vector<double>& of) {
  report::Series out{name, {}};
  for (std::size_t i = 0; i < of.size(); ++i) out.points.push_back({s.sizes[i], of[i]});
  return out;
}

report::Series joined(report::Series first, const report::Series& second) {
  first.points.insert(first.points.end(), second.points.begin(), second.points.end());
  return first;
}

// The largest difference of both ways at one length: the cost of something else would say nothing.
double difference(Way way, std::int64_t n) {
  const Inputs in = inputs(n);
  const auto wide = [](const Tensor& t) { return ops::cast(t, DType::f64); };
  return largest_difference(wide(dense(in, kWindow)), wide(way(in, kWindow)));
}

// Both ways over the same lengths, the banded one with several windows. Arithmetic and bytes are
// counted, not timed: the same in every run.
struct Costs {
  double flops = 0, bytes = 0;
};

Costs costs_of(const Inputs& in, std::int64_t window, Way way) {
  const auto call = [&] { way(in, window); };
  const auto bytes = static_cast<double>(peak_bytes_of(call));
  const CostMeter meter;
  call();
  return {meter.cost().flops, bytes};
}

report::Explorer window_explorer(const std::string& name, const std::string& title,
                                 const std::string& unit) {
  return {.name = name,
          .title = title,
          .caption = tr("Both ways over the same lengths; the window is the slider's."),
          .law = "grid",
          .slider = {.label = tr("window w"),
                     .low = 32,
                     .high = 2048,
                     .start = 128,
                     .steps = 3,
                     .logarithmic = true},
          .x = {"N", 256, 2048, true},
          .y = {unit, 1, 10, true},
          .lines = {tr("dense"), tr("banded")},
          .measured = {}};
}

void add_explorers(Findings& f, Way way) {
  report::Explorer work = window_explorer("window-work", tr("Arithmetic with another window"),
                                          tr("floating-point operations")),
                   memory = window_explorer("window-memory", tr("Memory with another window"),
                                            tr("bytes beyond q, k and v"));
  for (const std::int64_t n : kBothLengths) {
    const Inputs in = inputs(n);
    for (const std::int64_t w : {32, 128, 512, 2048}) {
      const Costs all[] = {costs_of(in, w, dense), costs_of(in, w, way)};
      for (std::size_t line = 0; line < 2; ++line) {
        const auto at = static_cast<double>(w), x = static_cast<double>(n);
        work.measured.push_back({at, line, x, all[line].flops});
        memory.measured.push_back({at, line, x, all[line].bytes});
      }
    }
  }
  for (report::Explorer* e : {&work, &memory}) {
    double low = INFINITY, high = 0;
    for (const report::Explorer::Sample& s : e->measured) {
      low = std::min(low, s.y);
      high = std::max(high, s.y);
    }
    e->y.low = std::pow(10.0, std::floor(std::log10(low)));
    e->y.high = std::pow(10.0, std::ceil(std::log10(high)));
    f.explore(std::move(*e));
  }
}

void control_ways(Findings& f, const Series& d, const Series& b, const Series& bw, Way way) {
  f.control(tr("dense and banded outputs differ by (float32)"), difference(way, 512),
            Relation::less, 1e-4);
  f.control(tr("banded bytes: exponent in w"), bw.exponent(bw.bytes), Relation::less, 0.1);
  f.control(tr("N = 2048: dense bytes over banded ones"), d.bytes.back() / b.bytes.front(),
            Relation::greater, 10);
  f.control(tr("N = 2048: dense seconds over banded ones"), d.seconds.back() / b.seconds.front(),
            Relation::greater, 2);
  // The scores alone, 4 bytes each.
  f.control(tr("dense, N = 2048: bytes over those of the scores"),
            d.bytes.back() / (4.0 * 2048 * 2048), Relation::at_least, 1);
}

void numbers(Findings& f, const Series& d, const Series& b, const Series& bw) {
  f.number("dense_time_exponent", d.exponent(d.seconds), tr("dense: time ~ N to the power"));
  f.number("dense_bytes_exponent", d.exponent(d.bytes), tr("dense: bytes ~ N to the power"));
  f.number("banded_time_exponent", b.exponent(b.seconds), tr("banded: time ~ N to the power"));
  f.number("banded_bytes_exponent", b.exponent(b.bytes), tr("banded: bytes ~ N to the power"));
  f.number("banded_time_exponent_w", bw.exponent(bw.seconds), tr("banded: time ~ w to the power"));
  f.number("banded_flops_exponent_w", bw.exponent(bw.flops),
           tr("banded: arithmetic ~ w to the power"));
  f.number("banded_bytes_exponent_w", bw.exponent(bw.bytes), tr("banded: bytes ~ w to the power"));
  f.number("dense_seconds_2048", d.seconds.back(), tr("dense, N = 2048"), mark("s"));
  f.number("banded_seconds_2048", b.seconds.front(), tr("banded, N = 2048"), mark("s"));
  f.number("dense_bytes_2048", d.bytes.back(), tr("dense, N = 2048"), mark("bytes"));
  f.number("banded_bytes_2048", b.bytes.front(), tr("banded, N = 2048"), mark("bytes"));
}

void run(Findings& f) {
  const Series d = against_n(dense, kBothLengths);
  const Way way = f.fault("no-window")          ? without_window
                  : f.fault("twice-the-window") ? with_twice_the_window
                                                : banded;
  const Way timed = f.fault("nothing-timed") ? nothing : way;
  const Series b = against_n(timed, {2048, 4096, 8192, 16384, 32768});
  // Too short for an exponent, with the kernel's fixed workspace: for the pictures.
  const Series short_b = against_n(timed, {256, 512, 1024});
  const Series bw = against_w(way);
  numbers(f, d, b, bw);
  report::LineChart time;
  time.x_label = "N";
  time.y_label = tr("seconds of one thread");
  time.log_x = time.log_y = true;
  const std::string dense_name = tr("dense"), banded_name = tr("banded");
  time.series = {line(dense_name, d, d.seconds),
                 joined(line(banded_name, short_b, short_b.seconds), line("", b, b.seconds))};
  f.figure(time, tr("Time against the length, w = 128: slope 2 against slope 1. The dense way is "
                    "measured up to N = 2048, the banded one at the same lengths and on."));
  report::LineChart bytes = time;
  bytes.y_label = tr("bytes beyond q, k and v");
  bytes.series = {line(dense_name, d, d.bytes),
                  joined(line(banded_name, short_b, short_b.bytes), line("", b, b.bytes))};
  f.figure(bytes, tr("Memory against the length."));

  add_explorers(f, way);
  control_ways(f, d, b, bw, way);
  bool all = true;
  const auto near = [&](const std::string& what, double exponent, double wanted) {
    if (!f.check(what, std::abs(exponent - wanted), Relation::less, 0.4)) all = false;
  };
  near(tr("dense time: distance of the exponent in N from 2"), d.exponent(d.seconds), 2);
  near(tr("dense bytes: distance from 2"), d.exponent(d.bytes), 2);
  near(tr("banded time: distance from 1"), b.exponent(b.seconds), 1);
  near(tr("banded arithmetic: distance of the exponent in w from 1"), bw.exponent(bw.flops), 1);
  near(tr("banded time: distance of the exponent in w from 1"), bw.exponent(bw.seconds), 1);
  if (!f.check(tr("banded bytes: exponent in N"), b.exponent(b.bytes), Relation::less, 1.4))
    all = false;
  f.verdict(all ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "window-cost",
      .topic = topics::windows,
      .title = mark("What a window saves"),
      .claim = mark("By the formula, sliding-window attention takes time and memory N²; computed "
                    "window by window it takes time N·w and memory N."),
      .formula = "T ~ N^2 quad → quad T ~ N · (frac{w}{2} + 1)",
      .source = mark("Document 000, 3.1(a), (b), (d), (e). The student's answer to (b), memory N, "
                     "is already doubted there."),
      .method = mark("The formula in plain products for N = 256 to 2048, Heddle's banded kernel "
                     "for N = 2048 to 32768 and w = 1024 to 8192: time of one thread, peak bytes "
                     "of tensors, and arithmetic; exponents by least squares on logarithms."),
      .threshold = mark(
          "Exponents within 0.4 of 2 or 1: nearly halfway between the two, with room for caches. "
          "The kernel's fixed workspace makes the exponent of its memory smaller than 1, so there "
          "1.4 is a bound from above. Time in w lies below 1: the blocks at the two edges of the "
          "window and what is done once for each row cost the same for every w."),
      .expected = Verdict::holds,
      .because = mark("The formula fills an N × N matrix of which the mask throws nearly all away. "
                      "A kernel that visits only blocks within the window does N·(w/2 + 1) "
                      "products and keeps no matrix at all, whatever w is."),
      .faults = {{"no-window", mark("the banded kernel gets no window")},
                 {"twice-the-window", mark("the banded kernel looks back w tokens instead of w/2")},
                 {"nothing-timed", mark("the call that is timed computes nothing")}},
      .run = run,
  };
}

}  // namespace heddle::lab::window_cost
