#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "autograd/accumulate.h"
#include "autograd/record.h"
#include "heddle/cost.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle {
namespace {

using Floats = std::vector<float>;

Tensor leaf(std::initializer_list<float> values) {
  Tensor t = Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
  t.set_requires_grad(true);
  return t;
}

std::string message(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::autograd) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Tape, DifferentiatesAndAccumulates) {
  Tensor x = leaf({1, 2, 3});
  for (int pass = 1; pass <= 2; ++pass) {
    Tape tape;
    const Tensor y = ops::sum_all(ops::add(ops::mul(x, x), x));  // x is used three times
    tape.backward(y);
    const auto f = static_cast<float>(pass);
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3 * f, 5 * f, 7 * f}));
  }
  x.clear_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Tape, GradientsOfLeavesShareNoMemory) {
  Tensor a = leaf({1, 2});
  Tensor b = leaf({3, 4});
  Tape tape;
  const Tensor y = ops::sum_all(ops::add(a, b));  // one cotangent goes to both
  tape.backward(y);
  Tensor ga = a.grad();
  ga.mutable_data<float>()[0] = 100;
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{1, 1}));
}

// The gradient of x is a view of the cotangent, which is the caller's.
TEST(Tape, GradientsShareNoMemoryWithCotangents) {
  Tensor x = leaf({1, 2});
  Tensor given = Tensor::from<float>({1, 2}, {5.0f, 6.0f});
  for (int pass = 1; pass <= 2; ++pass) {
    Tape tape;
    const Tensor y = ops::reshape(x, {1, 2});
    tape.backward(std::span(&y, 1), std::span(&given, 1));
    const auto f = static_cast<float>(pass);
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{5 * f, 6 * f}));
    EXPECT_EQ(given.to_vector<float>(), (Floats{5, 6}));
    given.mutable_data<float>()[0] = 100;
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{5 * f, 6 * f}));
    given.mutable_data<float>()[0] = 5;
  }
}

TEST(Tape, CotangentsHaveTheShapeAndTypeOfTheirOutputs) {
  Tensor x = leaf({1, 2});
  for (const Tensor& wrong : {Tensor::full({3}, 1, DType::f32), Tensor::full({2}, 1, DType::f64),
                              Tensor::full({2}, 1, DType::f32, Device::meta)}) {
    Tape tape;
    const Tensor y = ops::mul(x, x);
    EXPECT_NE(message([&] {
                tape.backward(std::span(&y, 1), std::span(&wrong, 1));
              }).find("the cotangent does not fit its output"),
              std::string::npos)
        << wrong.describe();
  }
}

// dx of x itself is its cotangent, plus the part that comes through 3 x.
TEST(Tape, ALeafMayBeAnOutputToo) {
  Tensor x = leaf({1, 2});
  Tape tape;
  const std::array<Tensor, 2> outputs = {x, ops::scale(x, 3)};
  const std::array<Tensor, 2> given = {Tensor::from<float>({2}, {10.0f, 20.0f}),
                                       Tensor::from<float>({2}, {1.0f, 2.0f})};
  tape.backward(outputs, given);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{13, 26}));
}

TEST(Tape, WithoutGradientsWhatATapeMadeCanBeRead) {
  Tensor x = leaf({1, 2});
  Tape tape;
  const Tensor y = ops::mul(x, x);
  {
    const NoGrad no_grad;
    EXPECT_EQ(ops::add(y, y).to_vector<float>(), (Floats{2, 8}));
  }
  tape.backward(ops::sum_all(y));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 4}));
}

TEST(Tape, WithoutOneNothingIsRecorded) {
  Tensor x = leaf({1, 2});
  Tensor y = Tensor::from<float>({2}, {1.0f, 4.0f});
  autograd::record("square", {&x}, {&y}, [](VjpContext&) { FAIL() << "a way back"; });
  Tape tape;
  EXPECT_NE(message([&] {
              tape.backward(std::span(&y, 1), std::span(&y, 1));
            }).find("not computed on this tape"),
            std::string::npos);
}

TEST(Tape, UnusedOutputsAndConstantsCostNothing) {
  Tensor x = leaf({1, 2});
  const Tensor c = Tensor::from<float>({2}, {5.0f, 6.0f});
  Tape tape;
  const Tensor unused = ops::exp(x);
  EXPECT_EQ(tape.recorded_ops(), 1u);
  (void)ops::exp(c);
  EXPECT_EQ(tape.recorded_ops(), 1u);
  {
    const NoGrad no_grad;
    (void)ops::exp(x);
  }
  EXPECT_EQ(tape.recorded_ops(), 1u);
  tape.backward(ops::sum_all(ops::mul(x, c)));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{5, 6}));
  EXPECT_FALSE(c.grad().defined());
}

TEST(Tape, SecondBackwardIsRefused) {
  Tensor x = leaf({1});
  Tape tape;
  const Tensor y = ops::sum_all(ops::square(x));
  tape.backward(y);
  EXPECT_NE(message([&] { tape.backward(y); }).find("already been used"), std::string::npos);
}

TEST(Tape, InPlaceChangeOfASavedTensorIsRefused) {
  Tensor x = leaf({1, 2});
  Tensor c = Tensor::from<float>({2}, {5.0f, 6.0f});
  Tape tape;
  const Tensor y = ops::sum_all(ops::mul(x, c));
  c.mutable_data<float>()[0] = 7;
  EXPECT_NE(message([&] { tape.backward(y); }).find("changed in place"), std::string::npos);
}

TEST(Tape, InPlaceOpsRefuseRecordedTensors) {
  Tensor x = leaf({1, 2});
  Tape tape;
  Tensor y = ops::square(x);
  EXPECT_NE(message([&] { ops::add_into(y, x); }).find("in place"), std::string::npos);
}

TEST(Tape, ForeignTensorsAreRefused) {
  Tensor x = leaf({1});
  const Tensor outside = ops::square(x);  // no tape
  Tape tape;
  EXPECT_NE(message([&] { tape.backward(outside); }).find("not computed on this tape"),
            std::string::npos);
  const Tensor y = ops::square(leaf({1, 2}));
  EXPECT_NE(message([&] { tape.backward(y); }).find("single number"), std::string::npos);
  const Tensor wrong = Tensor::zeros({3});
  EXPECT_NE(
      message([&] { tape.backward(std::span(&y, 1), std::span(&wrong, 1)); }).find("does not fit"),
      std::string::npos);
}

TEST(Tape, OuterTensorsOnInnerTapesAreRefused) {
  Tensor x = leaf({1, 2});
  Tape outer;
  const Tensor y = ops::square(x);
  Tape inner;
  EXPECT_NE(message([&] { (void)ops::square(y); }).find("another tape"), std::string::npos);
  EXPECT_NO_THROW((void)ops::square(y.detach()));
  EXPECT_NO_THROW((void)ops::square(x));  // leaves belong to no tape
}

TEST(Tape, TensorsOfATapeThatIsGoneAreRefused) {
  Tensor x = leaf({1, 2});
  Tensor y;
  {
    const Tape gone;
    y = ops::square(x);
  }
  const Tape tape;
  EXPECT_NE(message([&] { (void)ops::square(y); }).find("another tape"), std::string::npos);
  EXPECT_NO_THROW((void)ops::square(y.detach()));
}

// An inner tape that is used up must not swallow what the outer one is to differentiate.
TEST(Tape, TheOuterTapeGoesOnBehindAnInnerBackward) {
  Tensor x = leaf({1, 2});
  Tensor w = leaf({3, 4});
  Tape outer;
  Tape inner;
  inner.backward(ops::sum_all(ops::square(w)));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{6, 8}));
  outer.backward(ops::sum_all(ops::square(x)));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 4}));
}

TEST(Tape, TapesMayEndInAnyOrder) {
  Tensor x = leaf({1, 2});
  auto outer = std::make_unique<Tape>();
  auto inner = std::make_unique<Tape>();
  outer.reset();
  const Tensor y = ops::sum_all(ops::square(x));
  inner->backward(y);
  inner.reset();
  (void)ops::square(x);  // not recorded
  Tape tape;
  tape.backward(ops::sum_all(ops::square(x)));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 8}));
}

TEST(Tape, LeavesCanBeFrozenAndThawed) {
  Tensor x = leaf({1, 2});
  {
    const Tape tape;
    (void)ops::square(x);
  }
  x.set_requires_grad(false);
  x.set_requires_grad(true);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_THROW(Tensor().set_requires_grad(false), Error);
}

TEST(Tape, GradientsInF16AddUp) {
  Tensor x = leaf({1, 2});
  Tape tape;
  const Tensor h = ops::cast(x, DType::f16);
  tape.backward(ops::sum_all(ops::add(ops::cast(h, DType::f32), ops::cast(h, DType::f32))));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 2}));
}

TEST(Tape, MissingGradientNamesTheOp) {
  Tensor x = leaf({1});
  Tape tape;
  Tensor y = Tensor::zeros({1});
  autograd::record_without_gradient("argsort", {&x}, {&y});
  EXPECT_NE(message([&] { tape.backward(y); }).find("argsort: this op has no gradient"),
            std::string::npos);
}

TEST(Tape, WrongGradientShapeNamesTheOp) {
  Tensor x = leaf({1, 2});
  Tape tape;
  Tensor y = Tensor::zeros({1});
  autograd::record("faulty", {&x}, {&y}, [](VjpContext& c) { c.add(0, Tensor::zeros({3})); });
  EXPECT_NE(message([&] { tape.backward(y); }).find("faulty: its gradient of input 0"),
            std::string::npos);
}

TEST(Tape, WrongGradientOfALaterInputNamesIt) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tape tape;
    Tensor y = Tensor::zeros({2});
    autograd::record("faulty", {&a, &b}, {&y}, [dtype](VjpContext& c) {
      c.add(1, Tensor::zeros({dtype == DType::f64 ? 2 : 3}, dtype));  // one thing wrong at a time
    });
    const Tensor one = Tensor::full({2}, 1.0);
    const std::string text = message([&] { tape.backward(std::span(&y, 1), std::span(&one, 1)); });
    for (const char* part : {"faulty", "input 1", "f32 [2]"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Tape, WhatSumsAndCopiesCostIsCounted) {
  const Tensor from = Tensor::full({6}, 2.0), half = Tensor::full({6}, 2.0, DType::bf16);
  Tensor to = Tensor::full({6}, 3.0);
  const auto cost = [&](const Tensor& src, bool accumulate) {
    const CostMeter meter;
    autograd::copy_values(to, src, accumulate);
    return std::pair(meter.cost().flops, meter.cost().bytes);
  };
  EXPECT_EQ(cost(from, true), std::pair(6.0, 72.0));  // both are read, one is written
  EXPECT_EQ(to.to_vector<float>(), Floats(6, 5.0f));
  EXPECT_EQ(cost(from, false), std::pair(0.0, 48.0));
  EXPECT_EQ(cost(half, false), std::pair(0.0, 36.0));
  EXPECT_EQ(to.to_vector<float>(), Floats(6, 2.0f));
}

// An op may add to the sum of an input's gradients in place, but only where it is the tape's alone.
TEST(Tape, SumsOfGradientsCanBeTaken) {
  Tensor x = leaf({1, 2});
  Tape tape;
  std::vector<bool> taken;
  const auto op = [&](bool keep) {
    Tensor y = Tensor::zeros({2});
    autograd::record("adds", {&x}, {&y}, [&taken, keep](VjpContext& c) {
      static Tensor kept;  // another handle on the sum
      Tensor sum = c.take_sum(0);
      taken.push_back(sum.defined());
      if (!sum.defined()) sum = Tensor::zeros({2});
      sum.mutable_data<float>()[0] += 1;
      c.add(0, sum);
      kept = keep ? sum : Tensor();
    });
    return y;
  };
  const Tensor last = op(false), after_kept = op(false), kept = op(true), first = op(false);
  tape.backward(ops::sum_all(ops::add(ops::add(last, after_kept), ops::add(kept, first))));
  // Backwards: none yet; the first one's; not the one with another handle; the sum of both.
  EXPECT_EQ(taken, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 0}));
}

TEST(Tape, ReleasesActivationsDuringBackward) {
  Tensor x = Tensor::zeros({1 << 16});
  x.set_requires_grad(true);
  const std::int64_t before = memory_use(Device::cpu).live;
  Tape tape;
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = ops::sigmoid(y);
  y = ops::sum_all(y);
  const std::int64_t forward = memory_use(Device::cpu).live - before;
  EXPECT_GE(forward, 8 * 4 * (1 << 16));
  reset_peak_memory(Device::cpu);
  tape.backward(y);
  // At no time more than the activations and a few gradients; afterwards x's gradient alone.
  EXPECT_LE(memory_use(Device::cpu).peak - before, forward + 4 * 4 * (1 << 16));
  y = Tensor();
  EXPECT_EQ(memory_use(Device::cpu).live - before, 4 * (1 << 16));
  EXPECT_GE(memory_use(Device::cpu).live_by_purpose[static_cast<std::size_t>(Purpose::gradients)],
            4 * (1 << 16));
}

// The same loss and gradients with and without recomputation, with less memory.
TEST(Recompute, EqualsPlainBackward) {
  Tensor w = leaf({0.5f, -1.5f, 2});
  std::array<Floats, 2> dx;
  std::array<Floats, 2> dw;
  for (const bool recomputed : {false, true}) {
    Tensor x = leaf({1, 2, 3});
    w.clear_grad();
    Tape tape;
    const Tensor h = ops::tanh(x);
    const Region region = [&w](std::span<const Tensor> in) {
      return std::vector<Tensor>{ops::gelu(ops::mul(in[0], w)), ops::square(in[0])};
    };
    const std::array<Tensor, 1> inputs = {h};
    const std::vector<Tensor> out = recomputed ? recompute(region, inputs) : region(inputs);
    tape.backward(ops::sum_all(ops::mul(out[0], out[1])));
    dx[recomputed ? 1 : 0] = x.grad().to_vector<float>();
    dw[recomputed ? 1 : 0] = w.grad().to_vector<float>();
  }
  EXPECT_EQ(dx[0], dx[1]);
  EXPECT_EQ(dw[0], dw[1]);
}

TEST(Recompute, KeepsOnlyTheInputs) {
  const Region region = [](std::span<const Tensor> in) {
    Tensor y = in[0];
    for (int i = 0; i < 10; ++i) y = ops::sigmoid(y);
    return std::vector<Tensor>{y};
  };
  Tensor x = Tensor::zeros({1 << 14});
  x.set_requires_grad(true);
  const std::int64_t before = memory_use(Device::cpu).live;
  Tape tape;
  const std::array<Tensor, 1> inputs = {x};
  const Tensor y = recompute(region, inputs)[0];
  EXPECT_LE(memory_use(Device::cpu).live - before, 4 * (1 << 14));
  tape.backward(ops::sum_all(y));
  EXPECT_TRUE(x.grad().defined());
}

// A tensor captured by the region instead of passed as an input would lose its gradient: refused.
TEST(Recompute, CapturedTensorsAreRefused) {
  Tensor x = leaf({1, 2});
  Tensor w = leaf({3, 4});
  Tape tape;
  const Tensor h = ops::square(x);
  const Region region = [h](std::span<const Tensor> in) {
    return std::vector<Tensor>{ops::mul(in[0], h)};
  };
  const std::array<Tensor, 1> inputs = {w};
  const Tensor y = ops::sum_all(recompute(region, inputs)[0]);
  EXPECT_NE(message([&] { tape.backward(y); }).find("another tape"), std::string::npos);
}

TEST(Recompute, OutputsOfConstantsAreConstants) {
  Tensor x = leaf({1, 2});
  const Tensor c = Tensor::full({2}, 3);
  const Region squares = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{ops::square(in[0]), ops::square(in[1])};
  };
  const std::array<Tensor, 2> inputs = {x, c};
  Tape tape;
  const std::vector<Tensor> y = recompute(squares, inputs);
  tape.backward(ops::sum_all(ops::mul(y[0], y[1])));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{18, 36}));
}

TEST(Recompute, WithoutATapeItJustRuns) {
  const std::array<Tensor, 1> inputs = {Tensor::full({2}, 3)};
  const Region twice = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{ops::add(in[0], in[0])};
  };
  EXPECT_EQ(recompute(twice, inputs)[0].to_vector<float>(), (Floats{6, 6}));
}

}  // namespace
}  // namespace heddle
