// Shapes at their edges: sizes of 0 and 1, the most dimensions, the last that exists.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "heddle/error.h"
#include "heddle/shape.h"

namespace heddle {
namespace {

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ShapeEdges, SizesOfOneAndNoneTakeNoStep) {
  EXPECT_EQ(contiguous_strides({2, 1, 3}), (Strides{3, 3, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (Strides{3, 3, 1}));
  EXPECT_EQ(contiguous_strides({1, 5, 1}), (Strides{5, 1, 1}));
  EXPECT_EQ(contiguous_strides({}), Strides{});
}

TEST(ShapeEdges, ElementsAreCountedUpToTheLast) {
  EXPECT_EQ(elements_of({(1ll << 62) - 1, 2}), INT64_MAX - 1);
  EXPECT_EQ(elements_of({0}), 0);
  EXPECT_EQ(elements_of({1, 1}), 1);
  EXPECT_NE(refusal([] { elements_of({1ll << 62, 2}); }).find("[4611686018427387904, 2]"),
            std::string::npos);
  EXPECT_THROW(elements_of({0, -1}), Error);
}

TEST(ShapeEdges, BroadcastingIsAlignedAtTheLastDimension) {
  EXPECT_EQ(broadcast_shapes({3}, {2, 1}, "t"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 1}, {3}, "t"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {4, 2}, "t"), (Shape{4, 2}));
  EXPECT_EQ(broadcast_shapes({1, 0}, {5, 1}, "t"), (Shape{5, 0}));
  const std::string text = refusal([] { broadcast_shapes({2, 3}, {2}, "adding"); });
  for (const char* part : {"adding", "[2, 3] and [2]"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_THROW(broadcast_shapes({3, 2}, {2, 2}, "t"), Error);
}

TEST(ShapeEdges, DimensionsCountFromBothEnds) {
  EXPECT_EQ(normalize_dim(0, 3, "t"), 0);
  EXPECT_EQ(normalize_dim(2, 3, "t"), 2);
  EXPECT_EQ(normalize_dim(-1, 3, "t"), 2);
  EXPECT_EQ(normalize_dim(-3, 3, "t"), 0);
  for (const int dim : {3, -4}) {
    const std::string text = refusal([&] { normalize_dim(dim, 3, "somewhere"); });
    for (const std::string& part : {std::string("somewhere"), std::string("-3 to 2")})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_NE(refusal([] { normalize_dim(0, 0, "t"); }).find("not a scalar"), std::string::npos);
}

TEST(ShapeEdges, DimensionsComeAndGo) {
  Dims dims = Shape{4, 5, 6};
  dims.insert(0, 1);
  EXPECT_EQ(dims, (Shape{1, 4, 5, 6}));
  dims.insert(4, 9);
  EXPECT_EQ(dims, (Shape{1, 4, 5, 6, 9}));
  dims.insert(2, 7);
  EXPECT_EQ(dims, (Shape{1, 4, 7, 5, 6, 9}));
  dims.erase(2);
  dims.erase(4);
  dims.erase(0);
  EXPECT_EQ(dims, (Shape{4, 5, 6}));
  EXPECT_EQ(to_string(dims), "[4, 5, 6]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  while (dims.rank() < kMaxRank) dims.push_back(1);
  EXPECT_NE(refusal([&] { dims.push_back(1); }).find(std::to_string(kMaxRank + 1)),
            std::string::npos);
  EXPECT_EQ(dims.rank(), kMaxRank);
}

}  // namespace
}  // namespace heddle
