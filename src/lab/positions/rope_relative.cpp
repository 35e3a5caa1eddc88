// rope-relative: do scores of rotated queries and keys know the distance, and nothing else?
#include <algorithm>
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/rope.h"
#include "nn/position/sinusoidal.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/rope/rope.h"
#include "ops/view/view.h"

namespace heddle::lab::rope_relative {

namespace {

constexpr std::int64_t kWidth = 64, kDistance = 7;
// An angle at position 100000 rounds to 1e-11, a score sums 64 products of numbers near 1.
constexpr double kSame = 1e-8;

Tensor query() { return normal({1, 1, 1, kWidth}, 20); }
Tensor key() { return normal({1, 1, 1, kWidth}, 21); }

double dot(const Tensor& a, const Tensor& b) {
  return ops::sum_all(ops::mul(ops::cast(a, DType::f64), ops::cast(b, DType::f64))).item();
}

// The score of the query at position m with the key at position n.
double rope_score(const Findings& f, std::int64_t m, std::int64_t n, ops::Pairing pairing,
                  DType dtype) {
  const nn::Rotary rotary({.pairing = pairing}, kWidth);
  if (f.fault("key-one-later")) ++n;
  if (f.fault("key-not-rotated")) n = 0;
  if (f.fault("neighbours-not-rotated") && pairing == ops::Pairing::interleaved) n = 0;
  return dot(rotary.rotate(ops::cast(query(), dtype), m),
             rotary.rotate(ops::cast(key(), dtype), n));
}

double added_score(std::int64_t m, std::int64_t n) {
  const Shape shape{1, 1, 1, kWidth};
  const auto with = [&](const Tensor& x, std::int64_t p) {
    return ops::add(x, ops::reshape(nn::sinusoidal(p, 1, kWidth, DType::f64), shape));
  };
  return dot(with(query(), m), with(key(), n));
}

// Largest minus smallest score over the sequence, at one distance.
template <class Score>
double spread(const Findings& f, const Score& score) {
  const bool stays = f.fault("never-moved");
  double low = INFINITY, high = -INFINITY;
  for (const std::int64_t n : {0, 1, 10, 100, 1000, 5000, 20000}) {
    const double s = stays ? score(kDistance, 0) : score(n + kDistance, n);
    low = std::min(low, s);
    high = std::max(high, s);
  }
  return high - low;
}

// q · R · k with R turning by `steps` positions: negative steps by a sine of the other sign.
double turned_score(std::int64_t steps) {
  ops::RopeTables t = ops::rope_tables(kDistance + 1, kWidth, 10000, DType::f64);
  if (steps < 0) t.sin = ops::sub(Tensor::scalar(0, DType::f64), t.sin);
  const Tensor k = ops::rope(key(), t.cos, t.sin, {.first_position = std::abs(steps)});
  return dot(query(), k);
}

// The score over the distance for any base. Each pair of dimensions (halves) turns by its own
// angle, so a score is Σ a·cos + b·sin with a = q₁k₁ + q₂k₂ and b = q₁k₂ − q₂k₁.
report::Explorer bases() {
  const std::vector<double> q = query().to_vector<double>(), k = key().to_vector<double>();
  constexpr std::size_t kPairs = kWidth / 2;
  std::vector<double> a, b;
  a.reserve(kPairs);
  b.reserve(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) {
    a.push_back(q[i] * k[i] + q[i + kPairs] * k[i + kPairs]);
    b.push_back(q[i] * k[i + kPairs] - q[i + kPairs] * k[i]);
  }
  report::Explorer e{
      .name = "rope-base",
      .title = tr("Choose a base"),
      .caption = tr("The score of one query and one key over their distance. Small bases turn all "
                    "pairs fast, large ones keep the slow pairs almost still."),
      .law = "rope",
      .numbers = {{"a", a}, {"b", b}},
      .slider = {.label = tr("base of the angles"),
                 .low = 100,
                 .high = 1e6,
                 .start = 1e4,
                 .steps = 40,
                 .logarithmic = true},
      .x = {tr("distance"), 0, 200},
      .y = {tr("score"), -1, 1},
      .lines = {tr("score")},
      .measured = {},
      .readings = {{tr("distance after which the slowest pair has turned once:")}}};
  double largest = 0;
  for (const double base : {1e2, 1e3, 1e4, 1e5, 1e6}) {
    const nn::Rotary rotary({.base = base}, kWidth);
    for (std::int64_t d = 0; d <= 200; d += 5) {
      const double score = dot(rotary.rotate(query(), d), rotary.rotate(key(), 0));
      largest = std::max(largest, std::abs(score));
      e.measured.push_back({base, 0, static_cast<double>(d), score});
    }
  }
  e.y.high = std::ceil(1.3 * largest);
  e.y.low = -e.y.high;
  return e;
}

void run(Findings& f) {
  using ops::Pairing;
  const auto spread_of = [&f](Pairing pairing, DType dtype) {
    return spread(f, [&f, pairing, dtype](std::int64_t m, std::int64_t n) {
      return rope_score(f, m, n, pairing, dtype);
    });
  };
  const double half = spread_of(Pairing::half, DType::f64),
               interleaved = spread_of(Pairing::interleaved, DType::f64);
  const double added = spread(f, added_score);
  const double rounded =
      spread_of(Pairing::half, f.fault("float64-for-bfloat16") ? DType::f64 : DType::bf16);
  f.number("half", half, tr("spread over the sequence, RoPE (halves)"));
  f.number("interleaved", interleaved, tr("spread over the sequence, RoPE (neighbours)"));
  f.number("added", added, tr("spread over the sequence, sinusoidal codes added"));
  f.number("bf16", rounded, tr("spread of RoPE when q and k are bfloat16"));

  // Which way? The document's query stands at n = 7 here, its key at m = 0.
  const double score = rope_score(f, kDistance, 0, Pairing::half, DType::f64);
  const double defined = std::abs(score - turned_score(-kDistance));
  const double printed = std::abs(score - turned_score(kDistance));
  f.number("as_defined", defined, tr("(R_n q)·(R_m k) − q·R(m−n)·k, R as it is defined"));
  f.number("as_printed", printed, tr("the same with the matrix printed for R(m−n)"));

  report::LineChart chart;
  chart.x_label = tr("position of the key");
  chart.y_label = tr("score, query 7 places behind it");
  chart.series = {{"RoPE", {}}, {tr("sinusoidal codes added"), {}}};
  for (std::int64_t n = 0; n <= 200; n += 2) {
    const auto x = static_cast<double>(n);
    chart.series[0].points.push_back(
        {x, rope_score(f, n + kDistance, n, Pairing::half, DType::f64)});
    chart.series[1].points.push_back({x, added_score(n + kDistance, n)});
  }
  f.figure(chart, tr("One query and one key, always 7 places apart, moved along the sequence."));
  f.explore(bases());
  const bool relative = f.check(tr("RoPE's score varies along the sequence by"),
                                std::max(half, interleaved), Relation::less, kSame);
  f.control(tr("with added codes it varies by"), added, Relation::greater, 0.1);
  f.control(tr("score − q·R(m−n)·k, R as it is defined"), defined, Relation::less, kSame);
  f.control(tr("the same with the matrix printed for R(m−n)"), printed, Relation::greater, 0.01);
  // bfloat16 has 8 bits: q and k of size 1 are off by 2⁻⁹ each, a score of 64 products by about
  // 0.01.
  f.control(tr("in bfloat16 it varies by more than"), rounded, Relation::greater, 1e-3);
  f.control(tr("and by less than"), rounded, Relation::less, 0.5);
  f.verdict(relative ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "rope-relative",
      .topic = topics::positions,
      .title = mark("RoPE's scores know distances only"),
      .claim = mark("When queries and keys are rotated by their positions, a score depends on the "
                    "distance m − n alone, however large m and n are."),
      .formula = "(R_n q) · (R_m k) = q · R_{m - n} k",
      .source = mark("Document 004, RoPE, point 2."),
      .method = mark("One random query and key of width 64, 7 positions apart, at places from 0 to "
                     "20000: Heddle's rotation in float64 with both ways to pair dimensions, "
                     "against sinusoidal codes that are added, and against bfloat16. And whether "
                     "the matrix that the document prints for R(m − n) is the right one."),
      .threshold = mark("1e-8: angles of 2e4 round to 1e-12, and 64 products are summed. Added "
                        "codes must vary by 0.1 or more, else the test would see nothing."),
      .expected = Verdict::holds,
      .because = mark("The transpose of a rotation turns back, so R_nᵀ R_m = R(m − n). (The matrix "
                      "that the document prints for R(m − n) turns the other way than the R that "
                      "it defines; the claim does not depend on it.) In bfloat16 the statement is "
                      "true to the rounding of q and k only."),
      .faults = {{"key-one-later", mark("the key stands one place later than it says")},
                 {"key-not-rotated", mark("the key is not rotated")},
                 {"neighbours-not-rotated", mark("keys in pairs of neighbours are not rotated")},
                 {"never-moved", mark("the pair is not moved along the sequence")},
                 {"float64-for-bfloat16", mark("bfloat16 is measured in float64")}},
      .run = run,
  };
}

}  // namespace heddle::lab::rope_relative
