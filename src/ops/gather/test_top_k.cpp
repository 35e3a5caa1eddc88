#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "heddle/error.h"
#include "heddle/ops.h"

namespace heddle::ops {
namespace {

using Places = std::vector<std::int64_t>;

// Three rows: ties, negative numbers and infinities, all alike.
Tensor rows_to_rank(DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  return cast(Tensor::from<double>({3, 5}, {1, 3, 2, 3, 0,         //
                                            -2, -inf, -1, -3, -2,  //
                                            7, 7, 7, 7, 7}),
              dtype);
}

TEST(TopK, IsInOrderAndOfEqualsTheFirst) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = rows_to_rank(dtype);
    EXPECT_EQ(top_k(x, 3).to_vector<std::int64_t>(), (Places{1, 3, 2, 2, 0, 4, 0, 1, 2}));
    EXPECT_EQ(top_k(x, 1).to_vector<std::int64_t>(), (Places{1, 2, 0}));
    EXPECT_EQ(top_k(x, 5).to_vector<std::int64_t>(),
              (Places{1, 3, 2, 0, 4, 2, 0, 4, 3, 1, 0, 1, 2, 3, 4}));
    EXPECT_EQ(top_k(x, 0).shape(), (Shape{3, 0}));
  }
  EXPECT_EQ(top_k(transpose(rows_to_rank(DType::f32), 0, 1), 2).to_vector<std::int64_t>(),
            (Places{2, 0, 2, 0, 2, 0, 2, 0, 2, 0}));
}

TEST(TopK, ReferenceAgrees) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = rows_to_rank(dtype);
    EXPECT_EQ(reference::top_k(x, 5).to_vector<std::int64_t>(),
              (Places{1, 3, 2, 0, 4, 2, 0, 4, 3, 1, 0, 1, 2, 3, 4}));
    const Tensor many = random_uniform({40, 9}, 0, 1, {1, 2, 3}, dtype);
    EXPECT_EQ(reference::top_k(many, 4).to_vector<std::int64_t>(),
              top_k(many, 4).to_vector<std::int64_t>());
  }
}

TEST(TopK, NamesEachPlaceOnceBesideNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Places p =
      top_k(Tensor::from<double>({1, 4}, {nan, 2, nan, 3}), 4).to_vector<std::int64_t>();
  Places sorted = p;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (Places{0, 1, 2, 3}));
}

TEST(TopK, RefusesMoreThanThereAre) {
  EXPECT_THROW(top_k(rows_to_rank(DType::f32), 6), Error);
  EXPECT_THROW(top_k(rows_to_rank(DType::f32), -1), Error);
  EXPECT_THROW(top_k(Tensor::from<std::int32_t>({2}, {1, 2}), 1), Error);
}

}  // namespace
}  // namespace heddle::ops
