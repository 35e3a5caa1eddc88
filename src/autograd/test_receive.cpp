#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/receive.h"
#include "heddle/operators.h"
#include "heddle/tape.h"

namespace heddle::autograd {
namespace {

Tensor leaf_of(float a, float b) {
  Tensor x = Tensor::from<float>({2}, {a, b});
  x.set_requires_grad(true);
  return x;
}

// What a receiver is told, by name and in order.
struct Told {
  std::vector<std::pair<std::string, Tensor>> leaves;
  std::vector<std::string> order = {};
  std::map<std::string, std::vector<float>> grads = {};

  GradientReceiver receiver() {
    return [this](Tensor& leaf) {
      for (const auto& [name, tensor] : leaves) {
        if (tensor.impl() != leaf.impl()) continue;
        order.push_back(name);
        grads[name] = leaf.grad().defined() ? leaf.grad().to_vector<float>() : std::vector<float>{};
        leaf.clear_grad();
      }
    };
  }
};

void backward_of(Tape& tape, const Tensor& y) {
  const Tensor one = Tensor::full(y.shape(), 1.0, y.dtype(), y.device());
  tape.backward(std::span(&y, 1), std::span(&one, 1));
}

TEST(ReceiveGradients, TellsEachLeafWhenItsFirstUseIsBehind) {
  const Tensor a = leaf_of(1, 2), b = leaf_of(3, 5), c = leaf_of(7, 11);
  Told told{{{"a", a}, {"b", b}, {"c", c}}};
  Tape tape;
  // b is used first and last: the earliest op decides.
  const Tensor y = (a * b + c) * b;
  const ReceiveGradients receive(told.receiver());
  backward_of(tape, y);
  EXPECT_EQ(told.order, (std::vector<std::string>{"c", "a", "b"}));
  EXPECT_EQ(told.grads["a"], (std::vector<float>{9, 25}));               // b²
  EXPECT_EQ(told.grads["b"], (std::vector<float>{2 * 3 + 7, 20 + 11}));  // 2ab + c
  EXPECT_EQ(told.grads["c"], (std::vector<float>{3, 5}));
  for (const auto& [name, tensor] : told.leaves) EXPECT_FALSE(tensor.grad().defined());
}

TEST(ReceiveGradients, WhatWasThereBeforeIsAddedAndWhatIsLeftStays) {
  Tensor a = leaf_of(1, 2);
  const Tensor b = leaf_of(3, 5);
  a.set_grad(Tensor::from<float>({2}, {100, 200}));
  std::vector<float> seen;
  Tape tape;
  const Tensor y = a * b;
  {
    const ReceiveGradients receive([&](Tensor& leaf) {
      if (leaf.impl() == a.impl()) seen = leaf.grad().to_vector<float>();
    });
    backward_of(tape, y);
  }
  EXPECT_EQ(seen, (std::vector<float>{103, 205}));
  EXPECT_EQ(a.grad().to_vector<float>(), seen);
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{1, 2}));
  // Afterwards nobody is told.
  seen.clear();
  Tape next;
  backward_of(next, a * b);
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{106, 210}));
}

// Leaves of recomputed regions are told by the outer tape, when all regions that use them have been
// computed again.
TEST(ReceiveGradients, RecomputedRegionsTellNobodyThemselves) {
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    const Tensor x = leaf_of(1, 2), shared = leaf_of(3, 5), own = leaf_of(2, 4),
                 last = leaf_of(1, 10);
    Told told{{{"x", x}, {"shared", shared}, {"own", own}, {"last", last}}};
    const auto layer = [&](const Tensor& in, const Tensor& weight) {
      const Region region = [&shared, weight](std::span<const Tensor> r) {
        return std::vector<Tensor>{r[0] * shared + weight};
      };
      return again ? recompute(region, std::span(&in, 1)).front() : region({&in, 1}).front();
    };
    Tape tape;
    const Tensor y = layer(layer(x, own), last);
    const ReceiveGradients receive(told.receiver());
    backward_of(tape, y);
    ASSERT_EQ(told.order.size(), 4u);
    EXPECT_EQ(told.order.front(), "last");
    EXPECT_EQ(told.grads["x"], (std::vector<float>{9, 25}));
    EXPECT_EQ(told.grads["own"], (std::vector<float>{3, 5}));
    EXPECT_EQ(told.grads["shared"], (std::vector<float>{2 * 3 + 2, 20 + 4}));  // 2·x·s + own
    EXPECT_EQ(told.grads["last"], (std::vector<float>{1, 1}));
  }
}

TEST(ReceiveGradients, ALeafThatNothingArrivesAtIsToldToo) {
  const Tensor a = leaf_of(1, 2), b = leaf_of(3, 5);
  Told told{{{"a", a}, {"b", b}}};
  Tape tape;
  const Tensor unused = b * b, y = a * a;
  const ReceiveGradients receive(told.receiver());
  backward_of(tape, y);
  EXPECT_EQ(told.order, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(told.grads["b"].empty());
  EXPECT_EQ(told.grads["a"], (std::vector<float>{2, 4}));
}

TEST(ReceiveGradients, WhatAReceiverThrowsEndsThePass) {
  const Tensor a = leaf_of(1, 2), b = leaf_of(3, 5);
  int told = 0;
  const ReceiveGradients receive([&](Tensor&) {
    ++told;
    fail(ErrorCode::failed, "receiver", "ends here");
  });
  {
    Tape tape;
    const Tensor y = a * b;
    EXPECT_THROW(backward_of(tape, y), Error);
  }
  EXPECT_EQ(told, 1);
  // It is asked again in the next pass.
  Tape tape;
  const Tensor y = a * b;
  EXPECT_THROW(backward_of(tape, y), Error);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace heddle::autograd
