// A number where an op wants dimensions is refused by the name of the argument, not by whatever
// looks at its shape first.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/ops.h"

namespace heddle::ops {
namespace {

struct ScalarCase {
  const char *op, *argument, *expected;
  std::function<void(const Tensor&)> call;
};

TEST(Scalars, AreRefusedByName) {
  const char *one = "1 or more dimensions", *two = "2 or more dimensions";
  const Tensor ids = Tensor::zeros({2}, DType::i64), row = Tensor::zeros({2}),
               square = Tensor::zeros({2, 2});
  const std::vector<std::int64_t> sizes = {1};
  const std::vector<ScalarCase> cases = {
      {"softmax", "x", one, [](const Tensor& x) { softmax(x); }},
      {"log_softmax", "x", one, [](const Tensor& x) { log_softmax(x); }},
      {"glu", "both", one, [](const Tensor& x) { glu(x); }},
      {"gather", "x", one, [&](const Tensor& x) { gather(x, 0, ids); }},
      {"scatter_add", "x", one, [&](const Tensor& x) { scatter_add(x, 0, ids, row); }},
      {"index_select", "x", one, [&](const Tensor& x) { index_select(x, ids); }},
      {"index_add", "x", one, [&](const Tensor& x) { index_add(x, ids, row); }},
      {"linear", "x", one, [&](const Tensor& x) { linear(x, square); }},
      {"matmul", "a", two, [&](const Tensor& x) { matmul(x, square); }},
      {"matmul", "b", two, [&](const Tensor& x) { matmul(square, x); }},
      {"split", "x", one, [&](const Tensor& x) { split(x, sizes, 0); }},
      {"concat", "parts[0]", one, [](const Tensor& x) { concat(std::span(&x, 1), 0); }},
  };
  for (const ScalarCase& c : cases) {
    try {
      c.call(Tensor::scalar(1));
      ADD_FAILURE() << c.op << " takes a number for " << c.argument;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::shape_mismatch) << e.what();
      EXPECT_EQ(e.where(), c.op) << e.what();
      EXPECT_EQ(e.problem(), std::string("argument ") + c.argument) << e.what();
      EXPECT_EQ(e.expected(), c.expected) << e.what();
    }
  }
}

}  // namespace
}  // namespace heddle::ops
