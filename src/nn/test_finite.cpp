#include <gtest/gtest.h>

#include <limits>

#include "autograd/observe.h"
#include "heddle/tape.h"
#include "nn/finite.h"
#include "ops/binary/binary.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"

namespace heddle::nn {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(FirstBadValue, NamesItsPlace) {
  EXPECT_EQ(first_bad_value(Tensor::from<float>({2}, {1, 2})), "");
  EXPECT_EQ(first_bad_value(Tensor::from<float>({2, 2}, {1, 2, -kInf, kNan})), "-inf at [1, 0]");
  EXPECT_EQ(first_bad_value(Tensor::full({3}, kNan, DType::bf16)), "nan at [0]");
  EXPECT_EQ(first_bad_value(Tensor::scalar(kInf)), "inf at []");
  EXPECT_EQ(first_bad_value(Tensor::zeros({2}, DType::i32)), "");
  EXPECT_EQ(first_bad_value(Tensor()), "");
}

struct Two {
  nn::Parameters store{nn::ParameterOptions{}};
  Tensor a = store.root().constant("first.a", {2}, 1);
  Tensor b = store.root().constant("second.b", {2}, 200);

  std::string explain(const auto& loss) {
    const auto pass = [&] {
      Tape tape;
      tape.backward(loss());
    };
    return explain_bad_value(store, pass).in_english();
  }
};

TEST(ExplainBadValue, NamesTheParameter) {
  Two two;
  two.b.mutable_data<float>()[1] = kNan;
  EXPECT_EQ(two.explain([&] { return ops::sum_all(two.a); }), "parameter second.b is nan at [1]");
}

TEST(ExplainBadValue, NamesTheFirstOpOfTheForwardPass) {
  Two two;
  const std::string said = two.explain([&] {
    const Tensor fine = ops::mul(two.a, two.a);
    const Tensor bad = ops::exp(two.b);  // e^200
    return ops::sum_all(ops::sub(ops::mul(bad, bad), fine));
  });
  EXPECT_NE(said.find("output 0 of op exp (second.b), number 1"), std::string::npos) << said;
  EXPECT_NE(said.find("inf at [0]"), std::string::npos) << said;
}

TEST(ExplainBadValue, SaysWhereAnOpWithoutParametersLies) {
  Two two;
  const std::string said =
      two.explain([&] { return ops::sum_all(ops::exp(ops::mul(two.b, two.a))); });
  EXPECT_NE(said.find("op exp (the op with second.b, first.a came before), number 1"),
            std::string::npos)
      << said;
}

// √0 is fine, its slope is not.
TEST(ExplainBadValue, NamesTheFirstOpOfTheBackwardPass) {
  Two two;
  two.a.mutable_data<float>()[1] = 0;
  const std::string said =
      two.explain([&] { return ops::sum_all(ops::mul(ops::sqrt(two.a), two.b)); });
  EXPECT_NE(said.find("gradient of input 0 of op sqrt (first.a)"), std::string::npos) << said;
  EXPECT_NE(said.find("inf at [1]"), std::string::npos) << said;
}

TEST(ExplainBadValue, SaysNothingOfFiniteOnes) {
  Two two;
  EXPECT_EQ(two.explain([&] { return ops::sum_all(ops::mul(two.a, two.b)); }), "");
}

TEST(ObserveOps, TheInnermostCountsAndEndsWithItsScope) {
  Two two;
  int outer = 0, inner = 0;
  const autograd::ObserveOps observe([&](const autograd::OpEvent&) { ++outer; });
  Tape tape;
  {
    const autograd::ObserveOps again([&](const autograd::OpEvent& e) {
      ++inner;
      EXPECT_FALSE(e.backward);
      EXPECT_EQ(e.inputs.size(), 2u);
    });
    (void)ops::mul(two.a, two.b);
  }
  EXPECT_EQ(inner, 1);
  tape.backward(ops::sum_all(two.a));
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 2);  // forward and backward of the sum
}

}  // namespace
}  // namespace heddle::nn
