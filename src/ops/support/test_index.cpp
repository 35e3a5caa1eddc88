// Where numbers of rows are checked: where they enter, on the host.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "heddle/error.h"
#include "heddle/ops.h"
#include "mock/mock.h"
#include "tensor/engine.h"

namespace heddle::index_tests {
namespace {

using Op = std::function<Tensor(const Tensor& x, const Tensor& index)>;

// x: [3, 2], index: [2, 2] or [2] of its rows.
struct Case {
  const char* name;
  Op op;
  Shape index;
};

const Case kCases[] = {
    {"embedding",
     [](const Tensor& x, const Tensor& i) { return ops::embedding(x, i, DType::f32); },
     {2}},
    {"index_select", [](const Tensor& x, const Tensor& i) { return ops::index_select(x, i); }, {2}},
    {"gather", [](const Tensor& x, const Tensor& i) { return ops::gather(x, 0, i); }, {2, 2}},
};

Tensor rows(const Shape& shape, std::int64_t last) {
  Tensor index = Tensor::full(shape, 1, DType::i64);
  index.mutable_data<std::int64_t>()[index.elements() - 1] = last;
  return index;
}

TEST(Index, FromTheHostGoesToTheDeviceOfTheNumbers) {
  const Tensor x = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor there = x.to(mock::device());
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Tensor index = rows(c.index, 2);
    const std::int64_t before = device_reads();
    const Tensor y = c.op(there, index);
    EXPECT_EQ(device_reads(), before);
    EXPECT_EQ(y.device(), mock::device());
    EXPECT_EQ(y.to_vector<float>(), c.op(x, index).to_vector<float>());
    EXPECT_EQ(y.to_vector<float>().back(), 6);
    // One that is there already is taken as it is, without being read.
    const Tensor moved = index.to(mock::device());
    const std::int64_t again = device_reads();
    const Tensor same = c.op(there, moved);
    EXPECT_EQ(device_reads(), again);
    EXPECT_EQ(same.to_vector<float>(), y.to_vector<float>());
  }
}

// An index made on the device is not read by the host: its routines stay in range themselves.
TEST(Index, OfTheDeviceStaysInside) {
  const Tensor x = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}, mock::device());
  for (const Case& c : kCases) {
    const Tensor y = c.op(x, rows(c.index, 1000000).to(mock::device()));
    EXPECT_EQ(y.to_vector<float>().back(), 6) << c.name;
  }
}

TEST(Index, IsCheckedBeforeItGoes) {
  const Tensor x = Tensor::zeros({3, 2}), there = x.to(mock::device());
  for (const Case& c : kCases)
    for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 40})
      for (const Tensor& table : {x, there}) {
        SCOPED_TRACE(std::string(c.name) + " " + std::to_string(bad) + " " + table.describe());
        try {
          c.op(table, rows(c.index, bad));
          ADD_FAILURE() << "was taken";
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::out_of_range);
          EXPECT_EQ(e.where(), c.name);
          EXPECT_EQ(e.got(), std::to_string(bad));
          EXPECT_NE(e.problem().find(c.index.rank() == 1 ? "position [1]" : "position [1, 1]"),
                    std::string::npos)
              << e.what();
        }
      }
}

// The other way round nothing goes by itself: the numbers of a model do not follow an index.
TEST(Index, OnAnotherDeviceThanTheNumbersIsRefused) {
  const Tensor x = Tensor::zeros({3, 2});
  for (const Case& c : kCases)
    EXPECT_THROW(c.op(x, rows(c.index, 0).to(mock::device())), Error) << c.name;
}

}  // namespace
}  // namespace heddle::index_tests
