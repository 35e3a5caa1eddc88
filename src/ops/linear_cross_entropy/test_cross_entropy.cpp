// Checks outside the case table: numbers worked out by hand, refused calls, and that logits are
// never all in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "heddle/tape.h"
#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace heddle {
namespace {

Error refused_with(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "was not refused";
  return {ErrorCode::io, "", "", "", ""};
}

const Tensor kTargets = Tensor::from<std::int64_t>({3}, {0, 4, -100});

TEST(CrossEntropy, NamesATargetOutOfRange) {
  const Tensor z = Tensor::zeros({3, 5});
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}}) {
    const Tensor t = Tensor::from<std::int64_t>({3}, {0, bad, -100});
    const Error e = refused_with([&] { ops::cross_entropy(z, t); });
    EXPECT_EQ(e.code(), ErrorCode::out_of_range);
    EXPECT_NE(e.problem().find("position 1"), std::string::npos) << e.what();
    EXPECT_EQ(e.got(), std::to_string(bad));
  }
  ops::CrossEntropyOptions options;
  options.ignore_index = -1;
  EXPECT_EQ(refused_with([&] { ops::cross_entropy(z, kTargets, options); }).code(),
            ErrorCode::out_of_range);
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({3, 8});
  const Tensor w = Tensor::zeros({5, 8});
  const auto fused = [](const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& t) {
    return refused_with([&] { ops::linear_cross_entropy(a, b, bias, t); }).code();
  };
  using enum ErrorCode;
  EXPECT_EQ(fused(Tensor(), w, {}, kTargets), invalid_argument);
  EXPECT_EQ(fused(x, Tensor(), {}, kTargets), invalid_argument);
  EXPECT_EQ(fused(x, w, {}, Tensor()), invalid_argument);
  EXPECT_EQ(fused(x, Tensor::zeros({5, 7}), {}, kTargets), shape_mismatch);
  EXPECT_EQ(fused(x, Tensor::zeros({5, 8}, DType::f64), {}, kTargets), dtype_mismatch);
  EXPECT_EQ(fused(x, w, Tensor::zeros({4}), kTargets), shape_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({3})), dtype_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({4}, DType::i64)), shape_mismatch);
  EXPECT_EQ(fused(x, w, {}, Tensor::zeros({3}, DType::i64, Device::meta)), device_mismatch);
  ops::CrossEntropyOptions options;
  options.label_smoothing = 1.5;
  const Error e = refused_with([&] { ops::linear_cross_entropy(x, w, {}, kTargets, options); });
  EXPECT_EQ(e.code(), invalid_argument);
  EXPECT_EQ(refused_with([&] { ops::cross_entropy(Tensor::zeros({}), kTargets); }).code(),
            shape_mismatch);
}

// ---- by hand: probabilities (1/2, 3/8, 1/8) with target 0, (1/8, 1/2, 3/8) with target 2, and an
// ignored row; class weights (1, 2, 4) and a smoothing of 0.3, 0.1 for each class.

const double kHalf = std::log(2.0), kThreeEighths = std::log(8.0 / 3), kEighth = std::log(8.0);
// -log p of the two rows, and their losses.
const double kPlain[] = {kHalf, kThreeEighths};
const double kWeighted[] = {kHalf, 4 * kThreeEighths};
const double kSmoothed[] = {
    0.7 * kHalf + 0.1 * (kHalf + 2 * kThreeEighths + 4 * kEighth),
    0.7 * 4 * kThreeEighths + 0.1 * (kEighth + 2 * kHalf + 4 * kThreeEighths)};

struct ByHand {
  Tensor log_probs = Tensor::from<double>({3, 3}, {-kHalf, -kThreeEighths, -kEighth,  //
                                                   -kEighth, -kHalf, -kThreeEighths, 0, -9, -9});
  Tensor logits;  // the same, each row moved by a number that the softmax does not see
  Tensor targets = Tensor::from<std::int64_t>({3}, {0, 2, -100});

  ByHand() {
    std::vector<double> z = log_probs.to_vector<double>();
    for (std::size_t i = 0; i < 9; ++i) z[i] += i < 3 ? 5.0 : -2.5;
    logits = Tensor::from<double>({3, 3}, std::span<const double>(z));
  }

  // The losses of the options by all three ops; the classifier's weight is the identity.
  std::vector<Tensor> losses(const ops::CrossEntropyOptions& o) const {
    const Tensor identity = Tensor::from<double>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
    return {ops::cross_entropy(logits, targets, o), ops::nll_loss(log_probs, targets, o),
            ops::linear_cross_entropy(logits, identity, {}, targets, o)};
  }

  void expect(const ops::CrossEntropyOptions& o, const std::vector<double>& wanted) const {
    for (const Tensor& loss : losses(o)) {
      const std::vector<double> got = loss.to_vector<double>();
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
    }
  }
};

ops::CrossEntropyOptions by_hand(ops::Reduction reduction, double smoothing, bool weighted) {
  ops::CrossEntropyOptions o;
  o.reduction = reduction;
  o.label_smoothing = smoothing;
  if (weighted) o.class_weights = Tensor::from<double>({3}, {1, 2, 4});
  return o;
}

TEST(CrossEntropy, GivesWhatIsWorkedOutByHand) {
  using enum ops::Reduction;
  const ByHand rows;
  rows.expect(by_hand(none, 0, false), {kPlain[0], kPlain[1], 0});
  rows.expect(by_hand(mean, 0, false), {(kPlain[0] + kPlain[1]) / 2});
  rows.expect(by_hand(none, 0, true), {kWeighted[0], kWeighted[1], 0});
  rows.expect(by_hand(sum, 0, true), {kWeighted[0] + kWeighted[1]});
  rows.expect(by_hand(mean, 0, true), {(kWeighted[0] + kWeighted[1]) / (1 + 4)});
  rows.expect(by_hand(none, 0.3, true), {kSmoothed[0], kSmoothed[1], 0});
  rows.expect(by_hand(sum, 0.3, true), {kSmoothed[0] + kSmoothed[1]});
  rows.expect(by_hand(mean, 0.3, true), {(kSmoothed[0] + kSmoothed[1]) / (1 + 4)});
}

void expect_gradient(const Tensor& at, const std::function<Tensor(const Tensor&)>& loss,
                     const std::vector<double>& wanted) {
  Tensor x = ops::clone(at);
  x.set_requires_grad(true);
  Tape tape;
  const Tensor y = loss(x);
  const Tensor dy = Tensor::from<double>({3}, {2, -3, 100});
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  const std::vector<double> got = x.grad().to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14) << i;
}

// Row 0: 2·(1.4·p - (0.7, 0, 0) - 0.1·w); row 1: -3·(3.5·p - (0, 0, 2.8) - 0.1·w).
TEST(CrossEntropy, GivesEachRowItsOwnGradient) {
  const ByHand rows;
  const ops::CrossEntropyOptions o = by_hand(ops::Reduction::none, 0.3, true);
  const std::vector<double> dz = {-0.2, 0.65, -0.45, -1.0125, -4.65, 5.6625, 0, 0, 0};
  const Tensor identity = Tensor::from<double>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  expect_gradient(
      rows.logits, [&](const Tensor& z) { return ops::cross_entropy(z, rows.targets, o); }, dz);
  expect_gradient(
      rows.logits,
      [&](const Tensor& x) { return ops::linear_cross_entropy(x, identity, {}, rows.targets, o); },
      dz);
  expect_gradient(rows.log_probs,
                  [&](const Tensor& l) { return ops::nll_loss(l, rows.targets, o); },
                  {-1.6, -0.4, -0.8, 0.3, 0.6, 9.6, 0, 0, 0});
}

// Rows count by their targets' weights: where those are all 0, nothing does.
TEST(CrossEntropy, NothingCountsWhereWeightsAreZero) {
  const ByHand rows;
  ops::CrossEntropyOptions o = by_hand(ops::Reduction::mean, 0.3, false);
  o.class_weights = Tensor::from<double>({3}, {0, 5, 0});
  rows.expect(o, {0});
}

TEST(CrossEntropy, RefusesClassWeightsThatMakeNoSense) {
  const ByHand rows;
  const auto refused = [&](const Tensor& weights) {
    ops::CrossEntropyOptions o;
    o.class_weights = weights;
    return refused_with([&] { (void)rows.losses(o); });
  };
  using enum ErrorCode;
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, inf, std::nan("")}) {
    const Error e = refused(Tensor::from<double>({3}, {1, bad, 1}));
    EXPECT_EQ(e.code(), out_of_range);
    EXPECT_NE(e.problem().find("class_weights at position 1"), std::string::npos) << e.what();
  }
  EXPECT_EQ(refused(Tensor::zeros({2}, DType::f64)).code(), shape_mismatch);
  EXPECT_EQ(refused(Tensor::zeros({3})).code(), dtype_mismatch);
  Tensor learned = Tensor::full({3}, 1, DType::f64);
  learned.set_requires_grad(true);
  const Tape tape;
  EXPECT_EQ(refused(learned).code(), autograd);
}

// 64k rows of 50257 logits would be 13 GB.
TEST(CrossEntropy, LogitsAreNeverAllInMemory) {
  Tensor x = Tensor::zeros({65536, 64}, DType::bf16, Device::meta);
  Tensor w = Tensor::zeros({50257, 64}, DType::f32, Device::meta);
  const Tensor t = Tensor::zeros({65536}, DType::i32, Device::meta);
  x.set_requires_grad(true);
  w.set_requires_grad(true);
  reset_peak_memory(Device::meta);
  const std::int64_t before = memory_use(Device::meta).live;
  Tape tape;
  tape.backward(ops::linear_cross_entropy(x, w, {}, t));
  EXPECT_LT(memory_use(Device::meta).peak - before, std::int64_t{250} << 20);
}

}  // namespace
}  // namespace heddle
