#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/unary/unary.h"
#include "ops/unary/unary.kernels.h"

namespace heddle::harness::unary_cases {
namespace {

using Op = Tensor (*)(const Tensor&);

void add(const char* name, Op op, double (*f)(double), Fill fill = Fill::normal, double slack = 1) {
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{7, 5}, Shape{3, 1, 67}}) {
    Case c;
    c.op = "unary";
    c.name = std::string(name) + to_string(shape);
    c.inputs = {act(shape, fill)};
    c.run = [op](std::span<const Tensor> in) { return Tensors{op(in[0])}; };
    c.reference = elementwise([f](std::span<const double> x) { return f(x[0]); });
    c.slack = slack;
    add_case(c);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gelu_tanh(double x) {
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

const bool registered = [] {
  add("neg", ops::neg, [](double x) { return -x; });
  add("exp", ops::exp, [](double x) { return std::exp(x); });
  add("log", ops::log, [](double x) { return std::log(x); }, Fill::positive);
  add("sqrt", ops::sqrt, [](double x) { return std::sqrt(x); }, Fill::positive);
  add("rsqrt", ops::rsqrt, [](double x) { return 1 / std::sqrt(x); }, Fill::positive);
  add("square", ops::square, [](double x) { return x * x; });
  add(
      "scale", [](const Tensor& x) { return ops::scale(x, -1.75); },
      [](double x) { return -1.75 * x; });
  add(
      "add_number", [](const Tensor& x) { return ops::add(x, 0.75); },
      [](double x) { return x + 0.75; });
  add("relu", ops::relu, [](double x) { return x > 0 ? x : 0; }, Fill::off_zero);
  add("gelu", ops::gelu,
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
  add("gelu_tanh", ops::gelu_tanh, gelu_tanh);
  add("silu", ops::silu, [](double x) { return x * sigmoid(x); });
  add("quick_gelu", ops::quick_gelu, [](double x) { return x * sigmoid(1.702 * x); });
  add("tanh", ops::tanh, [](double x) { return std::tanh(x); });
  add("sigmoid", ops::sigmoid, sigmoid);
  add(
      "softcap", [](const Tensor& x) { return ops::softcap(x, 1.5); },
      [](double x) { return 1.5 * std::tanh(x / 1.5); });

  Case large;
  large.op = "unary";
  large.name = "several chunks";
  large.inputs = {act({3, 16411})};
  large.run = [](std::span<const Tensor> in) { return Tensors{ops::gelu(in[0])}; };
  large.reference = elementwise([](std::span<const double> x) {
    return 0.5 * x[0] * (1 + std::erf(x[0] / std::numbers::sqrt2));
  });
  add_case(large);

  using K = cpu::UnaryKernels;
  using G = cpu::UnaryGradientKernels;
  add_kernel_mutant<K>("unary", "the last element is left out", [](K& k) {
    k.forward = [](const cpu::UnaryArgs& a) noexcept {
      cpu::UnaryArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("unary", "one element too many", [](K& k) {
    k.forward = [](const cpu::UnaryArgs& a) noexcept {
      cpu::UnaryArgs b = a;
      b.count += 1;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("unary", "gelu differentiated as its tanh approximation", [](G& k) {
    k.backward = [](const cpu::UnaryBackwardArgs& a) noexcept {
      cpu::UnaryBackwardArgs b = a;
      if (b.kind == cpu::Unary::gelu) b.kind = cpu::Unary::gelu_tanh;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("unary", "softcap's gradient forgets the cap", [](G& k) {
    k.backward = [](const cpu::UnaryBackwardArgs& a) noexcept {
      cpu::UnaryBackwardArgs b = a;
      if (b.kind == cpu::Unary::softcap) b.parameter = 1;
      sound<G>().backward(b);
    };
  });
  return true;
}();

// The cases of the harness are too small to be written past the caches.
TEST(unary_kernels, streaming_changes_nothing) {
  constexpr std::int64_t kCount = 16384 + 37;  // a second piece, with a tail
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const auto& k = cpu::native_kernels<cpu::UnaryKernels>(isa);
      const auto& gradient = cpu::native_kernels<cpu::UnaryGradientKernels>(isa);
      const Tensor x = make_tensor({kCount}, dtype, normals(kCount, 1));
      const Tensor dy = make_tensor({kCount}, dtype, normals(kCount, 2));
      Tensor y[2], dx[2];
      for (int i = 0; i < 2; ++i) {
        y[i] = Tensor::empty({kCount}, dtype);
        dx[i] = Tensor::empty({kCount}, dtype);
        k.forward({cpu::Unary::silu, dtype, i == 1, kCount, 0, x.raw(), y[i].mutable_raw()});
        gradient.backward(
            {cpu::Unary::silu, dtype, i == 1, kCount, 0, x.raw(), dy.raw(), dx[i].mutable_raw()});
      }
      EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
      EXPECT_EQ(to_doubles(dx[0]), to_doubles(dx[1]));
    }
}

struct IsaRestored {
  cpu::Isa before = cpu::current_isa();
  ~IsaRestored() { cpu::set_isa(before); }
};

// Every finite bf16 there is: the functions that are cheaper for bf16 are hardly less exact than
// the rounding of their results, half a unit in the last place.
TEST(unary_kernels, every_bf16) {
  struct Function {
    Tensor (*op)(const Tensor&);
    double (*f)(double);
  };
  const Function functions[] = {
      {ops::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {ops::silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {ops::gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {ops::gelu_tanh, [](double x) {
         const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
         return x / (1 + std::exp(-2 * u));
       }}};
  std::vector<double> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    if ((bits & 0x7f80u) != 0x7f80u) all.push_back(std::bit_cast<float>(bits << 16));
  const Tensor x = make_tensor({static_cast<std::int64_t>(all.size())}, DType::bf16, all);
  const IsaRestored restore;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const Function& function : functions) {
      const auto y = to_doubles(function.op(x));
      int wrong = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double want = function.f(all[i]);
        // The factor of x may count as zero below 2^-126.
        const double nothing = 0x1p-126 * (1 + std::abs(all[i]));
        const bool right = std::abs(y[i] - want) <= 1.1 * 0x1p-8 * std::abs(want) + nothing;
        EXPECT_TRUE(right || ++wrong > 3) << all[i] << " gives " << y[i] << " for " << want;
      }
      EXPECT_EQ(wrong, 0) << cpu::to_string(isa) << ", function " << (&function - functions);
    }
  }
}

// The same for derivatives. Where they cross zero the terms they are made of set the measure.
TEST(unary_kernels, every_bf16_differentiated) {
  struct Function {
    Tensor (*op)(const Tensor&);
    double (*derivative)(double);
  };
  const Function functions[] = {
      {ops::silu,
       [](double x) {
         const double s = 1 / (1 + std::exp(-x)), rest = 1 / (1 + std::exp(x));
         return s + (s * rest > 0 ? x * s * rest : 0);
       }},
      {ops::gelu_tanh, [](double x) {
         const double c = 2 * std::sqrt(2 / std::numbers::pi);
         const double z = c * (x + 0.044715 * x * x * x);
         const double s = 1 / (1 + std::exp(-z)), rest = 1 / (1 + std::exp(z));
         return s + (s * rest > 0 ? x * s * rest * c * (1 + 3 * 0.044715 * x * x) : 0);
       }}};
  std::vector<double> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    if (const double x = std::bit_cast<float>(bits << 16); std::abs(x) <= 1e18) all.push_back(x);
  const auto count = static_cast<std::int64_t>(all.size());
  Tensor x = make_tensor({count}, DType::bf16, all);
  x.set_requires_grad(true);
  const IsaRestored restore;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const Function& function : functions) {
      x.clear_grad();
      Tape tape;
      const Tensor y[] = {function.op(x)};
      const Tensor dy[] = {Tensor::full({count}, 1, DType::bf16)};
      tape.backward(y, dy);
      const auto dx = to_doubles(x.grad());
      int wrong = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double want = function.derivative(all[i]);
        const double terms = std::abs(all[i]) < 2 ? 0x1p-12 : 0;
        const double nothing = 0x1p-126 * (1 + std::abs(all[i] * all[i] * all[i]));
        const bool right =
            std::abs(dx[i] - want) <= 1.1 * 0x1p-8 * std::abs(want) + terms + nothing;
        EXPECT_TRUE(right || ++wrong > 3) << all[i] << " gives " << dx[i] << " for " << want;
      }
      EXPECT_EQ(wrong, 0) << cpu::to_string(isa) << ", function " << (&function - functions);
    }
  }
}

// Extreme arguments that the fast exponential must handle.
TEST(unary_kernels, far_out) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({8}, {-inf, -1e30f, -100.0f, 0.0f, 88.5f, 100.0f, inf, nan});
  const IsaRestored restore;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    const auto e = to_doubles(ops::exp(x));
    for (const int i : {0, 1, 2}) EXPECT_EQ(e[static_cast<std::size_t>(i)], 0);
    EXPECT_EQ(e[3], 1);
    EXPECT_NEAR(e[4] / std::exp(88.5), 1, 1e-6);
    EXPECT_EQ(e[5], inf);
    EXPECT_EQ(e[6], inf);
    const auto s = to_doubles(ops::sigmoid(x));
    EXPECT_EQ(s[0], 0);
    EXPECT_NEAR(s[6], 1, 1e-6);
    const auto t = to_doubles(ops::tanh(x));
    EXPECT_EQ(t[0], -1);
    EXPECT_EQ(t[6], 1);
    for (const auto op : {ops::gelu_tanh, ops::silu, ops::gelu}) {
      const auto y = to_doubles(op(x));
      EXPECT_EQ(y[1], 0);
      EXPECT_EQ(y[5], 100);
      EXPECT_EQ(y[6], inf);
    }
    for (const auto op : {ops::exp, ops::sigmoid, ops::tanh, ops::gelu_tanh, ops::silu, ops::gelu})
      EXPECT_TRUE(std::isnan(to_doubles(op(x))[7]));
  }
}

}  // namespace
}  // namespace heddle::harness::unary_cases
