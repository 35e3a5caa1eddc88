// f16 by widening: computed in f32, rounded once. From 2048 on f16 leaves out odd numbers.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle::ops {
namespace widening {
namespace {

Tensor halves(const Shape& shape, const std::vector<float>& values) {
  return to_half(Tensor::from<float>(shape, std::span<const float>(values)));
}

void expect_halves(const Tensor& got, const std::vector<float>& wanted) {
  EXPECT_TRUE(is_half(got));
  EXPECT_EQ(wide(got).to_vector<float>(), wanted);
}

TEST(Widening, LeavesOthersAlone) {
  EXPECT_FALSE(is_half(Tensor()));
  EXPECT_FALSE(is_half(Tensor::zeros({1}, DType::bf16)));
  EXPECT_FALSE(wide(Tensor()).defined());
  EXPECT_EQ(wide(Tensor::zeros({1}, DType::bf16)).dtype(), DType::bf16);
}

TEST(Widening, RoundsOnce) {
  expect_halves(add(halves({2}, {2048, 2048}), halves({2}, {1, 3})), {2048, 2052});
  // Rounded after each term it would be 2048.
  expect_halves(sum_all(halves({3}, {2048, 1, 1})), {2050});
  expect_halves(matmul(halves({1, 3}, {1, 1, 1}), halves({3, 1}, {2048, 1, 1})), {2050});
  expect_halves(linear(halves({1, 3}, {1, 1, 1}), Tensor::from<float>({1, 3}, {2048, 1, 1})),
                {2050});
  expect_halves(gather(halves({3}, {5, 6, 7}), 0, Tensor::from<std::int64_t>({2}, {2, 0})), {7, 5});
}

// Results that are f32 for bf16 inputs are f32 for f16 inputs.
TEST(Widening, LeavesWideResultsWide) {
  const Tensor x = halves({1, 2}, {1, 2});
  const Tensor target = Tensor::zeros({1}, DType::i64);
  EXPECT_EQ(cross_entropy(x, target).dtype(), DType::f32);
  EXPECT_EQ(nll_loss(x, target).item(), -1);
  LinearOptions unrounded;
  unrounded.wide = true;
  EXPECT_EQ(linear(x, Tensor::from<float>({1, 2}, {2048, 0.5}), {}, unrounded).to_vector<float>(),
            (std::vector<float>{2049}));
  const Tensor q = halves({1, 1, 1, 2}, {1, 2});
  EXPECT_EQ(attention_with_sums(q, q, q).row_sums.dtype(), DType::f32);
  EXPECT_EQ(attention_weights(q, q, {}, {0, 0, 1}).dtype(), DType::f32);
}

// d(x · x) = 2x, summed from two halves.
TEST(Widening, GivesGradientsInF16) {
  Tensor x = halves({2}, {3, -0.5});
  x.set_requires_grad(true);
  Tape tape;
  tape.backward(sum_all(mul(x, x)));
  expect_halves(x.grad(), {6, -1});
}

TEST(Widening, BothSidesAreF16OrNeither) {
  const Tensor half = halves({2}, {1, 2}), single = Tensor::full({2}, 1);
  EXPECT_THROW((void)add(half, single), Error);
  EXPECT_THROW((void)add(single, half), Error);
  Tensor target = clone(half);
  try {
    add_into(target, half);
    ADD_FAILURE() << "was not refused";
  } catch (const Error& e) {
    EXPECT_NE(e.expected().find("f16 is widened where a new tensor is made"), std::string::npos);
  }
}

}  // namespace
}  // namespace widening
}  // namespace heddle::ops
