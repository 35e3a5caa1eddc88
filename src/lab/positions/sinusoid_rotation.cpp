// sinusoid-rotation: is the code of position p + Δ a rotation of the code of p, the same for all p?
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "nn/position/sinusoidal.h"
#include "ops/rope/rope.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::lab::sinusoid_rotation {

namespace {

constexpr std::int64_t kWidth = 64, kPositions = 256, kSteps = 300;
// An angle p/w has a rounding error of p · 1e-16, so 1e-11 at the largest position here.
constexpr double kSame = 1e-10;

// Rows first .. first + count of the table, turned by the document's matrix for a step of `delta`:
//   [ cos Δθ   sin Δθ ]
//   [-sin Δθ   cos Δθ ]    which is what RoPE does at position Δ, with the sine's sign changed.
Tensor turned(const Findings& f, const Tensor& rows, std::int64_t delta, double sign) {
  const ops::RopeTables tables = ops::rope_tables(delta + 1, kWidth, 10000, DType::f64);
  const std::int64_t count = rows.size(0);
  const std::vector<std::int64_t> same(static_cast<std::size_t>(count), delta);
  ops::RopeOptions options;
  options.pairing = f.fault("other-pairing") ? ops::Pairing::half : ops::Pairing::interleaved;
  options.positions = Tensor::from<std::int64_t>({count}, std::span<const std::int64_t>(same));
  const Tensor x = ops::reshape(rows, {1, count, 1, kWidth});
  return ops::reshape(ops::rope(x, tables.cos, ops::scale(tables.sin, sign), options),
                      {count, kWidth});
}

void run(Findings& f) {
  double worst = 0, other_way = 0, reached = 0;
  const std::int64_t late = f.fault("one-position-late") ? 1 : 0;
  const auto off = [&](const Tensor& rows, const Tensor& later, std::int64_t delta, double sign) {
    const Tensor code = f.fault("code-twice") ? later : turned(f, rows, delta, sign);
    return largest_difference(code, later);
  };
  for (const std::int64_t first : {0, 1000, 100000}) {
    if (f.fault("beginning-only") && first > 0) break;
    reached = static_cast<double>(first + kPositions);
    const Tensor rows = nn::sinusoidal(first, kPositions, kWidth, DType::f64);
    for (std::int64_t delta = 1; delta <= kSteps; delta += 13) {
      const Tensor later = nn::sinusoidal(first + delta + late, kPositions, kWidth, DType::f64);
      worst = std::max(worst, off(rows, later, delta, -1));
      other_way = std::max(other_way, off(rows, later, delta, 1));
    }
  }
  f.number("worst", worst, tr("R(Δ)·PE(p) − PE(p + Δ), largest over all p and Δ"));
  f.number("other_way", other_way, tr("the same with the rotation the other way round"));
  f.number("positions", reached, tr("positions reach up to"));

  report::HeatMap map;
  map.x_label = tr("dimension");
  map.y_label = tr("position");
  map.values = rows_of(nn::sinusoidal(0, 48, kWidth, DType::f64));
  f.figure(map, tr("The codes of the first 48 positions: each pair of columns is a clock hand, "
                   "fast ones on the left, slow ones on the right. A step forward turns every hand "
                   "by its own fixed angle."));

  f.control(tr("positions reach up to"), reached, Relation::equal, 100256);
  const bool same =
      f.check(tr("turned code and code of p + Δ differ by"), worst, Relation::less, kSame);
  const bool clockwise =
      f.check(tr("turned the other way they differ by"), other_way, Relation::greater, 0.1);
  f.verdict(same && clockwise ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "sinusoid-rotation",
      .topic = topics::positions,
      .title = mark("A step in position is a rotation"),
      .claim = mark("The sinusoidal code of position p + Δ is that of p turned clockwise, each "
                    "pair of dimensions by Δ·θᵢ, whatever p is."),
      .formula =
          "e_{2 i}(p) = sin(p θ_i) quad e_{2 i + 1}(p) = cos(p θ_i) quad θ_i = 10000^{-2 i/d}",
      .source = mark("Document 004, properties of the sinusoidal encoding, with a proof."),
      .method = mark("Rows of Heddle's table (width 64, float64) at p from 0 to 100255 are turned "
                     "by Heddle's rotary op with the document's matrix for Δ = 1, 14, 27, … and "
                     "compared with the rows at p + Δ; once more with the rotation the other way."),
      .threshold =
          mark("1e-10: an angle of 1e5 rounds to 1e-11, and a wrong rotation differs by about 1."),
      .expected = Verdict::holds,
      .because = mark("It is the addition theorem of sine and cosine. In the plane of (sin, cos) "
                      "time runs clockwise, so the document's sign is right too."),
      .faults = {{"one-position-late", mark("codes are compared with those of p + Δ + 1")},
                 {"other-pairing", mark("the rotation pairs dimension i with i + 32")},
                 {"code-twice", mark("a code is compared with itself")},
                 {"beginning-only", mark("only the first positions are looked at")}},
      .run = run,
  };
}

}  // namespace heddle::lab::sinusoid_rotation
