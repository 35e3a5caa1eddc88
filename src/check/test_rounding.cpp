// Rounding as a random event, and how far it moves results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/settings.h"
#include "check/report.h"
#include "check/rounding.h"
#include "check/spread.h"
#include "check/subject.h"
#include "check/tolerance.h"
#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm.kernels.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::check {
namespace {

TEST(CheckRounding, MovesEveryNumberByItsShareAtMost) {
  const double epsilon = 0x1p-8;
  std::vector<double> v(1000, 3.0);
  Tensor a = Tensor::from<double>({1000}, std::span<const double>(v));
  Tensor b = Tensor::from<double>({1000}, std::span<const double>(v));
  Jitter{epsilon, 1}.move(a, 5);
  Jitter{epsilon, 2}.move(b, 5);
  double most = 0, sum = 0;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double apart = a.to_vector<double>()[i] / 3 - 1;
    most = std::max(most, std::abs(apart));
    sum += apart;
    alike += a.data<double>()[i] == b.data<double>()[i] ? 1 : 0;
  }
  EXPECT_LE(most, epsilon);
  EXPECT_GT(most, 0.98 * epsilon);
  EXPECT_LT(std::abs(sum / 1000), 0.06 * epsilon);  // even: a deviation of 1 / √3000
  EXPECT_LT(alike, 5u);
}

TEST(CheckRounding, LeavesPlantedKernelsAsTheyWere) {
  using NormTable = cpu::NormKernels;
  static NormTable table = cpu::native_kernels<NormTable>(cpu::Isa::generic);
  cpu::planted_kernels<NormTable> = &table;
  {
    const RoundedOps rounded(Jitter{0x1p-8, 1});
    EXPECT_NE(cpu::planted_kernels<NormTable>, &table);
  }
  EXPECT_EQ(cpu::planted_kernels<NormTable>, &table);
  cpu::planted_kernels<NormTable> = nullptr;
}

// Draws are wider than rounding. y = exp(1000 x) moves 1000 times as far as x, z = x as far.
TEST(CheckSpread, FollowsHowFarResultsMove) {
  const cpu::SettingsScope restore;
  const auto results = [](const Jitter& jitter) {
    Tensor x = Tensor::full({500}, 1, DType::f64);
    jitter.move(x, 1);
    std::vector<double> y = x.to_vector<double>();
    for (double& v : y) v = std::exp(1000 * (v - 1));
    return std::vector<Named>{{"y", Tensor::from<double>({500}, std::span<const double>(y)), "y"},
                              {"z", x, "z"}};
  };
  const Spreads s = measure_spreads(results);
  const double f32 = 4 * 0x1p-23, f64 = 4 * 0x1p-52, bf16 = 4 * 0x1p-8;
  const double even = 1 / std::sqrt(3);  // of a number between -1 and 1
  EXPECT_NEAR(s.of("z", DType::f32, Measure::mean), even * f32, 0.1 * f32);
  EXPECT_NEAR(s.of("y", DType::f32, Measure::mean), 1000 * even * f32, 100 * f32);
  EXPECT_NEAR(s.of("y", DType::f64, Measure::mean), 1000 * even * f64, 100 * f64);
  EXPECT_NEAR(s.of("z", DType::bf16, Measure::largest), bf16 / 2, 0.05 * bf16);  // |b| + r = 2
  const Way way{.roundings = 1, .terms = 16};
  const Allowance allowance{way, &s};
  EXPECT_EQ(allowed(allowance, "z", DType::f32, Measure::mean),
            std::max(tolerance(way, DType::f32, Measure::mean),
                     2 * s.of("z", DType::f32, Measure::mean)));
  EXPECT_FALSE(allowed(allowance, "y", DType::bf16, Measure::mean));  // anything: not compared
  EXPECT_TRUE(allowed(allowance, "y", DType::f64, Measure::mean));
  EXPECT_EQ(allowed({way}, "y", DType::bf16, Measure::mean),
            tolerance(way, DType::bf16, Measure::mean));
}

// The most of all draws, each measure by itself, of each type.
TEST(CheckSpread, LargestAndMeanAreToldApart) {
  Spreads s;
  s.f32.add({{"a", "g", 0x1p-17, 0x1p-21}, {"b", "g", 0x1p-18, 0x1p-20}});
  s.bf16.add({{"a", "g", 0.75, 0.125}});
  EXPECT_EQ(s.of("g", DType::f32, Measure::largest), 0x1p-17);
  EXPECT_EQ(s.of("g", DType::f32, Measure::mean), 0x1p-20);
  EXPECT_EQ(s.of("g", DType::bf16, Measure::largest), 0.75);
  EXPECT_EQ(s.of("g", DType::bf16, Measure::mean), 0.125);
  EXPECT_EQ(s.of("g", DType::f64, Measure::largest), 0x1p-46);
  EXPECT_EQ(s.of("g", DType::f64, Measure::mean), 0x1p-49);
  EXPECT_EQ(s.of("h", DType::f32, Measure::mean), 0);
}

// Spreads are measured with the logits in the list, errors of gradients without: by one measure all
// the same.
TEST(CheckSpread, GradientsAreMeasuredByGradients) {
  const auto list = [](double small, bool with_logits) {
    std::vector<Named> all = {{"layers.0.a.weight", Tensor::full({4}, small, DType::f64)},
                              {"layers.1.b.weight", Tensor::full({4}, 1e-3, DType::f64)}};
    if (with_logits) all.push_back({"logits", Tensor::full({64}, 100, DType::f64), "logits", true});
    return all;
  };
  const std::vector<Difference> with = differences_of(list(2e-5, true), list(1e-5, true));
  const std::vector<Difference> without = differences_of(list(2e-5, false), list(1e-5, false));
  EXPECT_NEAR(without[0].mean, 1, 1e-9);
  EXPECT_EQ(with[0].mean, without[0].mean);
  EXPECT_EQ(with[0].largest, without[0].largest);
}

// A norm of one column leaves nothing but 0, and rounding any number: that is no result that holds
// still. What is not a number is none of rounding's.
TEST(CheckSpread, WhatMovesFrom0MovesWithoutLimit) {
  const cpu::SettingsScope restore;
  const auto spreads = [](double moved) {
    return measure_spreads([moved](const Jitter& jitter) {
      const double value = jitter.epsilon > 0 ? moved : 0;
      return std::vector<Named>{{"y", Tensor::full({3}, value, DType::f64), "y"}};
    });
  };
  const Spreads some = spreads(1e-17), none = spreads(0), nan = spreads(std::nan(""));
  EXPECT_FALSE(allowed({{}, &some}, "y", DType::bf16, Measure::mean));
  EXPECT_FALSE(allowed({{}, &some}, "y", DType::f32, Measure::largest));
  EXPECT_TRUE(allowed({{}, &none}, "y", DType::bf16, Measure::mean));
  EXPECT_TRUE(allowed({{}, &nan}, "y", DType::bf16, Measure::mean));
}

// The root mean square of n normal numbers is above this with a chance of 1e-5: 4.4 for 1, 2.7 for
// 4, and 2, which is the safety of a mean, for about 10 and more.
TEST(CheckTolerance, MeansOfFewElementsMayBeFurtherOff) {
  EXPECT_NEAR(slack_of_few(1), 4.4 / 2, 0.05);
  EXPECT_NEAR(slack_of_few(4), 2.7 / 2, 0.1);
  EXPECT_LT(slack_of_few(64), 1.02);
  EXPECT_EQ(slack_of_few(0), 1);
  const Tensor one = Tensor::full({1}, 1, DType::f64);
  EXPECT_EQ(differences_of({{"a.b.c", one}}, {{"a.b.c", one}})[0].elements, 1);
  const double limit = tolerance({}, DType::f32, Measure::mean);
  const auto passes = [&](std::int64_t elements, double error) {
    Report report;
    const std::vector<Difference> differences = {{"a", "g", 0, error, elements}};
    add_case(report, "path", best_setting(DType::f32), differences, Allowance{});
    return report.pass();
  };
  EXPECT_TRUE(passes(1, 2 * limit));
  EXPECT_FALSE(passes(1, 2.3 * limit));
  EXPECT_FALSE(passes(64, 1.1 * limit));
}

// The sign of a number or of a difference is all that is left of so few columns.
TEST(CheckTolerance, NormsThatGiveSignsWidenIt) {
  using enum nn::NormKind;
  const auto cancels = [](nn::NormKind norm, std::int64_t width, std::int64_t head) {
    model::ModelConfig c;
    c.layers = 1;
    c.norm = norm;
    c.width = width;
    c.attention.heads = 1;
    c.attention.head_width = head;
    if (head > 0) c.qk_norm = nn::QkNorm::head;
    c.sizes = {.vocabulary = 19, .context = 17};
    return way_through(c).cancels > 1;
  };
  EXPECT_TRUE(cancels(layer, 2, 0));
  EXPECT_FALSE(cancels(layer, 3, 0));
  EXPECT_TRUE(cancels(layer, 16, 2));
  EXPECT_FALSE(cancels(layer, 16, 4));
  EXPECT_TRUE(cancels(rms, 1, 0));
  EXPECT_FALSE(cancels(rms, 2, 0));
  EXPECT_TRUE(cancels(rms, 16, 1));
  EXPECT_FALSE(cancels(rms, 16, 2));
}

// Dropout scales kept values by 1 / (1 - p): their errors grow to 1 / √(1 - p) of what they were.
TEST(CheckTolerance, DropoutOfAnySiteWidensIt) {
  model::ModelConfig plain;
  plain.layers = 1;
  plain.width = 16;
  plain.sizes.vocabulary = 19;
  plain.sizes.context = 17;
  const double without = way_through(plain).gain;
  EXPECT_EQ(without, 1);
  for (const int site : {0, 1, 2}) {
    model::ModelConfig c = plain;
    (site == 0 ? c.dropout : site == 1 ? c.embedding_dropout : c.attention.dropout) = 0.75;
    EXPECT_EQ(way_through(c).gain, 2) << "site " << site;
  }
}

constexpr double kWidth = 0.01;

Tensor twos(const Shape& shape) {
  Tensor x = Tensor::full(shape, 2, DType::f64);
  x.set_requires_grad(true);
  return x;
}

// The largest |v / expected - 1|.
double farthest(const Tensor& t, double expected) {
  double most = 0;
  for (const double v : t.to_vector<double>()) most = std::max(most, std::abs(v / expected - 1));
  return most;
}

void go_back(Tape& tape, const Tensor& y) {
  const Tensor ones = Tensor::full(y.shape(), 1, DType::f64);
  tape.backward(std::span(&y, 1), std::span(&ones, 1));
}

TEST(CheckRounding, MovesWhatOpsMakeAndGradientsOfWhatIsNoLeaf) {
  const Tensor x = twos({1000});
  Tape tape;
  const RoundedOps rounded(Jitter{kWidth, 1});
  const Tensor y = ops::scale(x, 3);
  EXPECT_EQ(farthest(x, 2), 0);
  EXPECT_LE(farthest(y, 6), kWidth * 1.0001);
  EXPECT_GT(farthest(y, 6), 0.98 * kWidth);
  const Tensor z = ops::scale(y, 5);
  EXPECT_GT(farthest(z, 30), 1.5 * kWidth);  // once more
  go_back(tape, z);
  EXPECT_LE(farthest(x.grad(), 15), kWidth * 1.0001);  // that of y, and nothing after it
  EXPECT_GT(farthest(x.grad(), 15), 0.98 * kWidth);
}

TEST(CheckRounding, AViewMakesNothing) {
  const Tensor x = twos({1000});
  Tape tape;
  const RoundedOps rounded(Jitter{kWidth, 1});
  const Tensor y = ops::scale(x, 3);
  const std::vector<double> before = y.to_vector<double>();
  const Tensor seen = ops::reshape(y, {10, 100});
  EXPECT_EQ(seen.to_vector<double>(), before);
  go_back(tape, ops::scale(seen, 5));
  EXPECT_LE(farthest(x.grad(), 15), kWidth * 1.0001);
}

// The moved numbers are the op's result: no in-place change that the backward pass would refuse.
TEST(CheckRounding, TheWayBackReadsTheMovedNumbers) {
  const Tensor x = twos({1000});
  Tape tape;
  const RoundedOps rounded(Jitter{kWidth, 1});
  const Tensor y = ops::scale(x, 3);
  const std::vector<double> kept = y.to_vector<double>();
  go_back(tape, ops::mul(y, y));  // 2 y, moved, times 3
  const std::vector<double> g = x.grad().to_vector<double>();
  double most = 0;
  for (std::size_t i = 0; i < g.size(); ++i)
    most = std::max(most, std::abs(g[i] / (6 * kept[i]) - 1));
  EXPECT_LE(most, kWidth * 1.0001);
  EXPECT_GT(farthest(x.grad(), 36), 1.2 * kWidth);
}

// The loss of a bf16 pass is an f32.
TEST(CheckRounding, ASingleNumberStays) {
  const Tensor x = twos({1});
  Tape tape;
  const RoundedOps rounded(Jitter{kWidth, 1});
  EXPECT_EQ(ops::scale(x, 3).item(), 6);
}

// Of two columns a layer norm gives the sign, whose derivative is 0: moved inputs show nothing of
// what rounding leaves there.
TEST(CheckRounding, MovesByHowMuchANormDivides) {
  const auto most_gradient = [](double width) {
    std::vector<double> columns(200);
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = i % 2 == 0 ? 3 : -1;
    Tensor x = Tensor::from<double>({100, 2}, std::span<const double>(columns));
    x.set_requires_grad(true);
    Tape tape;
    const RoundedOps rounded(Jitter{width, 1});
    const Tensor y = ops::layer_norm(x, {}, {}, 1e-12);
    const Tensor up = Tensor::from<double>({1, 2}, {1.0, 0.0});
    go_back(tape, ops::mul(y, up));
    double most = 0;
    for (const double v : x.grad().to_vector<double>()) most = std::max(most, std::abs(v));
    return most;
  };
  EXPECT_LT(most_gradient(0), 1e-9);
  EXPECT_GT(most_gradient(kWidth), 1e-3);
}

// Sixteen roundings one after the other: four times as far as one.
TEST(CheckSpread, CountsEveryRoundingOnTheWay) {
  const cpu::SettingsScope restore;
  const Spreads s = measure_spreads([](const Jitter& jitter) {
    Tensor x = Tensor::full({5000}, 1, DType::f64);
    jitter.move(x, 1);
    x.set_requires_grad(true);
    const Tape tape;
    Tensor y = x;
    for (int i = 0; i < 15; ++i) y = ops::scale(y, 1.5);
    return std::vector<Named>{{"y", y.detach(), "y"}};
  });
  const double one = 4 * 0x1p-23 / std::sqrt(3);
  EXPECT_NEAR(s.of("y", DType::f32, Measure::mean), 4 * one, 0.2 * one);
}

}  // namespace
}  // namespace heddle::check
