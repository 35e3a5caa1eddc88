#include <gtest/gtest.h>

#include <vector>

#include "heddle/operators.h"
#include "heddle/tape.h"

namespace heddle {
namespace {

using Values = std::vector<float>;

Values values(const Tensor& x) { return x.to_vector<float>(); }

TEST(Operators, AreWhatPaperSays) {
  const Tensor a = Tensor::from({6, 8}), b = Tensor::from({2, 16});
  EXPECT_EQ(values(a + b), (Values{8, 24}));
  EXPECT_EQ(values(a - b), (Values{4, -8}));
  EXPECT_EQ(values(a * b), (Values{12, 128}));
  EXPECT_EQ(values(a / b), (Values{3, 0.5f}));
  EXPECT_EQ(values(-a), (Values{-6, -8}));
  EXPECT_EQ(values(a + 1), (Values{7, 9}));
  EXPECT_EQ(values(1 + a), (Values{7, 9}));
  EXPECT_EQ(values(a - 1), (Values{5, 7}));
  EXPECT_EQ(values(1 - a), (Values{-5, -7}));
  EXPECT_EQ(values(a * 2), (Values{12, 16}));
  EXPECT_EQ(values(2 * a), (Values{12, 16}));
  EXPECT_EQ(values(a / 2), (Values{3, 4}));
}

TEST(Operators, HaveGradients) {
  Tensor x = Tensor::from({3});
  x.set_requires_grad(true);
  Tape tape;
  tape.backward(1 - x * x / 2);  // d/dx = -x
  EXPECT_EQ(values(x.grad()), (Values{-3}));
}

}  // namespace
}  // namespace heddle
