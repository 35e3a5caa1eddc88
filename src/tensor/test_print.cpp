#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "heddle/print.h"
#include "mock/mock.h"

namespace heddle {
namespace {

TEST(Print, NumbersStandBelowEachOther) {
  const Tensor x = Tensor::from({{1, 0.5f}, {-2, 3.25f}});
  EXPECT_EQ(to_text(x), "[[ 1.0000,  0.5000],\n [-2.0000,  3.2500]]  f32 [2, 2] on cpu");
}

TEST(Print, EveryTypeAndRank) {
  EXPECT_EQ(to_text(Tensor::scalar(2.5)), "2.5000  f32 [] on cpu");
  EXPECT_EQ(to_text(Tensor::from<std::int32_t>({3}, {1, -20, 3})),
            "[  1, -20,   3]  i32 [3] on cpu");
  EXPECT_EQ(to_text(Tensor::full({2}, 1.5, DType::bf16)), "[1.5000, 1.5000]  bf16 [2] on cpu");
  EXPECT_EQ(to_text(Tensor::full({1}, 1.5, DType::f16)), "[1.5000]  f16 [1] on cpu");
  EXPECT_EQ(to_text(Tensor::full({1}, 1e-9, DType::f64)), "[1.0000e-09]  f64 [1] on cpu");
  EXPECT_EQ(to_text(Tensor::zeros({2, 1, 2}, DType::u8)),
            "[[[0, 0]],\n\n [[0, 0]]]  u8 [2, 1, 2] on cpu");
  EXPECT_EQ(to_text(Tensor::zeros({0, 3})), "[]  f32 [0, 3] on cpu");
  EXPECT_EQ(to_text(Tensor()), "an undefined tensor");
}

TEST(Print, StridesAndDevicesDoNotMatter) {
  const Tensor x = Tensor::from({{1, 2}, {3, 4}});
  EXPECT_EQ(to_text(views::transpose(x, 0, 1)).substr(0, 38),
            "[[1.0000, 3.0000],\n [2.0000, 4.0000]] ");
  EXPECT_EQ(to_text(x.to(mock::device())).substr(0, 17), to_text(x).substr(0, 17));
  EXPECT_EQ(to_text(Tensor::zeros({2}, DType::f32, Device::meta)), "f32 [2] on meta");
}

TEST(Print, LargeOnesShowTheirEdges) {
  Tensor x = Tensor::zeros({1000}, DType::i64);
  for (int i = 0; i < 1000; ++i) x.mutable_data<std::int64_t>()[i] = i;
  EXPECT_EQ(to_text(x), "[  0,   1,   2, ..., 997, 998, 999]  i64 [1000] on cpu");
  EXPECT_EQ(to_text(views::slice(x, 0, 0, 5), {.edge = 1, .most = 4}),
            "[0, ..., 4]  i64 [5] on cpu");
}

TEST(Print, WhatIsNotANumberIsSaid) {
  const Tensor x = Tensor::from<float>({3}, {NAN, INFINITY, -INFINITY});
  std::ostringstream out;
  out << x;
  EXPECT_EQ(out.str(), "[ nan,  inf, -inf]  f32 [3] on cpu");
}

TEST(Of, TakesListsOfAnyDepthUpToThree) {
  EXPECT_EQ(Tensor::from({1, 2, 3}).shape(), Shape({3}));
  const Tensor x = Tensor::from({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Tensor y = Tensor::from({{{1, 2}}, {{3, 4}}});
  EXPECT_EQ(y.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_THROW(Tensor::from({{1, 2, 3}, {4, 5}}), Error);
}

}  // namespace
}  // namespace heddle
