// Inputs that the case table does not reach: tails, denormals, infinities and NaN, in f32 and on
// every instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "backend/cpu/isa.h"
#include "heddle/ops/copy.h"
#include "heddle/tape.h"
#include "ops/unary/unary.h"

namespace heddle {
namespace {

using Op = Tensor (*)(const Tensor&);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> applied(Op op, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Tensor y = op(Tensor::from<float>({n}, x));
  return {y.data<float>(), y.data<float>() + n};
}

template <class Body>
void for_each_isa(Body body) {
  const cpu::Isa before = cpu::current_isa();
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    SCOPED_TRACE(std::string(cpu::to_string(isa)));
    body();
  }
  cpu::set_isa(before);
}

// The largest error in units of 2^-23 of the value, on a grid of [low, high] and on all exponents.
void expect_exact(const char* name, Op op, double (*f)(double), float low, float high) {
  std::vector<float> x;
  for (int i = 0; i <= 40000; ++i)
    x.push_back(low + (high - low) * (static_cast<float>(i) / 40000));
  for (int e = -149; e < 127; ++e)
    for (const float s : {-1.37f, 1.37f})
      if (const float v = std::ldexp(s, e); v >= low && v <= high) x.push_back(v);
  for_each_isa([&] {
    const std::vector<float> y = applied(op, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = f(x[i]);
      // A denormal factor that x multiplies is rounded by a unit of its own.
      const double unit = 0x1p-23 * std::abs(want) + 0x1p-149 * (1 + std::abs(x[i]));
      ASSERT_LE(std::abs(y[i] - want), 4 * unit) << name << "(" << x[i] << ")";
    }
  });
}

TEST(Unary, IsExactInTheTails) {
  expect_exact("exp", ops::exp, [](double x) { return std::exp(x); }, -86.5f, 88.7f);
  expect_exact("log", ops::log, [](double x) { return std::log(x); }, 1e-45f, 3e38f);
  expect_exact(
      "gelu", ops::gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, -20,
      20);
  expect_exact("silu", ops::silu, [](double x) { return x / (1 + std::exp(-x)); }, -120, 120);
  expect_exact("sigmoid", ops::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -120, 120);
  expect_exact("tanh", ops::tanh, [](double x) { return std::tanh(x); }, -20, 20);
}

TEST(Unary, SpecialValues) {
  for_each_isa([] {
    const std::vector<float> log = applied(ops::log, {0, -0.0f, kInfinity, -1, -kInfinity, kNaN});
    EXPECT_EQ(log[0], -kInfinity);
    EXPECT_EQ(log[1], -kInfinity);
    EXPECT_EQ(log[2], kInfinity);
    for (int i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(log[static_cast<std::size_t>(i)])) << i;
    EXPECT_EQ(applied(ops::exp, {0, kInfinity, -kInfinity, 1e30f, -1e30f}),
              (std::vector<float>{1, kInfinity, 0, kInfinity, 0}));
    EXPECT_EQ(applied(ops::sigmoid, {0, kInfinity, -kInfinity}), (std::vector<float>{0.5f, 1, 0}));
    EXPECT_EQ(applied(ops::gelu, {0, kInfinity, -kInfinity}),
              (std::vector<float>{0, kInfinity, 0}));
    for (const Op op : {Op{ops::exp}, Op{ops::log}, Op{ops::relu}, Op{ops::gelu},
                        Op{ops::gelu_tanh}, Op{ops::silu}, Op{ops::tanh}, Op{ops::sigmoid}})
      EXPECT_TRUE(std::isnan(applied(op, {kNaN})[0]));
  });
}

std::vector<float> slopes(Op op, const std::vector<float>& at, DType dtype) {
  const auto n = static_cast<std::int64_t>(at.size());
  Tensor x = ops::cast(Tensor::from<float>({n}, at), dtype);
  x.set_requires_grad(true);
  Tape tape;
  const Tensor y = op(x);
  const Tensor dy = Tensor::full({n}, 1, dtype);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  const Tensor dx = ops::cast(x.grad(), DType::f32);
  return {dx.data<float>(), dx.data<float>() + n};
}

// Where an activation is the identity or nothing, so is its derivative: squares and products on the
// way must not become infinite.
TEST(Unary, DerivativesFarOut) {
  for_each_isa([] {
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const Op op : {Op{ops::relu}, Op{ops::gelu}, Op{ops::gelu_tanh}, Op{ops::silu}})
        EXPECT_EQ(slopes(op, {128, 1e5f, 1e20f, 3e38f, kInfinity, -128, -1e20f, -3e38f}, dtype),
                  (std::vector<float>{1, 1, 1, 1, 1, 0, 0, 0}));
  });
}

}  // namespace
}  // namespace heddle
