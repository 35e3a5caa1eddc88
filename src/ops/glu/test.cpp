#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu.kernels.h"
#include "ops/unary/unary.h"

namespace heddle::harness::glu_cases {
namespace {

struct Form {
  const char* name;
  ops::GluOptions options;
};

const Form kForms[] = {{"silu", {}},
                       {"gelu", {Gate::gelu}},
                       {"gelu_tanh", {Gate::gelu_tanh}},
                       {"clamped", {Gate::clamped, 7}}};

constexpr double kLimit = 1.5;
constexpr ops::GluOptions kOptions{Gate::clamped, kLimit};

// Numbers around a limit and none close to it, where differences would see both sides: the inputs
// are no closer to 0 than 0.1. lower: up lies around the lower limit.
void add_limits(const Shape& shape, bool lower) {
  const double side = lower ? -kLimit : kLimit;
  Case c;
  c.op = "glu";
  c.name = std::string(lower ? "lower limit" : "upper limit") + to_string(shape);
  c.inputs = {act(shape, Fill::off_zero), act(shape, Fill::off_zero)};
  c.run = [side](std::span<const Tensor> in) {
    return Tensors{ops::glu(ops::add(in[0], kLimit), ops::add(in[1], side), kOptions)};
  };
  c.reference = [side](std::span<const Tensor> in) {
    return Tensors{ops::reference::glu(ops::add(in[0], kLimit), ops::add(in[1], side), kOptions)};
  };
  c.slack = 4;  // numbers of size 1.5 are rounded before they are bent
  add_case(c);
}

void add_apart(const Shape& shape, const Form& form) {
  Case c;
  c.op = "glu";
  c.name = std::string(form.name) + ", apart" + to_string(shape);
  c.inputs = {act(shape), act(shape)};
  const ops::GluOptions o = form.options;
  c.run = [o](std::span<const Tensor> in) { return Tensors{ops::glu(in[0], in[1], o)}; };
  c.reference = [o](std::span<const Tensor> in) {
    return Tensors{ops::reference::glu(in[0], in[1], o)};
  };
  add_case(c);
}

void add_packed(const Shape& shape, const Form& form) {
  Case c;
  c.op = "glu";
  c.name = std::string(form.name) + ", packed" + to_string(shape);
  c.inputs = {act(shape)};
  const ops::GluOptions o = form.options;
  c.run = [o](std::span<const Tensor> in) { return Tensors{ops::glu(in[0], o)}; };
  c.reference = [o](std::span<const Tensor> in) { return Tensors{ops::reference::glu(in[0], o)}; };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{7, 33}, Shape{2, 16411}})
    add_apart(shape, kForms[0]);
  for (const Shape& shape : {Shape{2}, Shape{5, 2}, Shape{0, 4}, Shape{3, 0}, Shape{7, 66},
                             Shape{2, 3, 130}, Shape{150, 258}, Shape{2, 32806}})
    add_packed(shape, kForms[0]);
  for (const Form& form : std::span(kForms).subspan(1)) {
    add_apart({7, 33}, form);
    for (const Shape& shape : {Shape{0, 4}, Shape{7, 66}, Shape{150, 258}}) add_packed(shape, form);
  }

  for (const bool lower : {false, true}) add_limits({7, 33}, lower);

  using K = cpu::GluKernels;
  using G = cpu::GluGradientKernels;
  add_kernel_mutant<K>("glu", "gate and up change places", [](K& k) {
    k.forward = [](const cpu::GluArgs& a) noexcept {
      cpu::GluArgs b = a;
      b.gate = a.up;
      b.up = a.gate;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("glu", "the gradients change places", [](G& k) {
    k.backward = [](const cpu::GluBackwardArgs& a) noexcept {
      cpu::GluBackwardArgs b = a;
      b.dgate = a.dup;
      b.dup = a.dgate;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("glu", "geglu differentiated as its tanh approximation", [](G& k) {
    k.backward = [](const cpu::GluBackwardArgs& a) noexcept {
      cpu::GluBackwardArgs b = a;
      if (b.kind == Gate::gelu) b.kind = Gate::gelu_tanh;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("glu", "gradients pass the limit", [](G& k) {
    k.backward = [](const cpu::GluBackwardArgs& a) noexcept {
      cpu::GluBackwardArgs b = a;
      if (b.kind == Gate::clamped) b.limit = 7;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("glu", "the last element is left out", [](G& k) {
    k.backward = [](const cpu::GluBackwardArgs& a) noexcept {
      cpu::GluBackwardArgs b = a;
      if (b.rows == 1 && b.columns > 1) b.columns -= 1;
      sound<G>().backward(b);
    };
  });
  return true;
}();

// The cases of the harness are too small to be written past the caches.
TEST(glu_kernels, StreamingChangesNothing) {
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::int64_t columns : {64, 50, 32}) {
        const auto& k = cpu::native_kernels<cpu::GluKernels>(isa);
        const auto& gradient = cpu::native_kernels<cpu::GluGradientKernels>(isa);
        const Shape shape{19, columns};
        const Tensor gate = make_tensor(shape, dtype, normals(19 * columns, 1));
        const Tensor up = make_tensor(shape, dtype, normals(19 * columns, 2));
        Tensor y[2], dgate[2], dup[2];
        for (int stream = 0; stream < 2; ++stream) {
          for (Tensor* t : {&y[stream], &dgate[stream], &dup[stream]})
            *t = Tensor::empty(shape, dtype);
          k.forward({dtype, stream == 1, 19, columns, columns, gate.raw(), up.raw(),
                     y[stream].mutable_raw()});
          gradient.backward({dtype, stream == 1, 1, 19 * columns, 0, gate.raw(), up.raw(), up.raw(),
                             dgate[stream].mutable_raw(), dup[stream].mutable_raw()});
        }
        EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
        EXPECT_EQ(to_doubles(dgate[0]), to_doubles(dgate[1]));
        EXPECT_EQ(to_doubles(dup[0]), to_doubles(dup[1]));
      }
}

// Far out nothing becomes infinite, and NaN stays NaN.
TEST(glu_kernels, LargeNumbersAreTaken) {
  const std::vector<float> values = {-1e30F, 1e30F, -300, 300, std::nanf("")};
  const Tensor x = Tensor::from<float>({5}, std::span<const float>(values));
  for (const Form& form : kForms) {
    Tensor gate = ops::clone(x), up = Tensor::full({5}, 0.5, DType::f32);
    gate.set_requires_grad(true);
    up.set_requires_grad(true);
    Tape tape;
    const Tensor y = ops::glu(gate, up, form.options);
    const Tensors outputs = {y}, ones = {Tensor::full({5}, 1, DType::f32)};
    tape.backward(outputs, ones);
    const std::vector<double> dgate = to_doubles(gate.grad()), dup = to_doubles(up.grad());
    EXPECT_EQ(dgate[0], 0) << form.name;
    EXPECT_EQ(dup[0], 0) << form.name;
    EXPECT_EQ(dgate[1], form.options.gate == Gate::clamped ? 0 : 0.5) << form.name;
    EXPECT_TRUE(std::isfinite(to_doubles(y)[1])) << form.name;
    EXPECT_TRUE(std::isnan(to_doubles(y)[4])) << form.name;
    EXPECT_TRUE(std::isnan(dgate[4])) << form.name;
  }
}

TEST(glu_calls, WrongOnesAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_THROW(ops::glu(x), Error);
  EXPECT_THROW(ops::glu(x, x, {Gate::clamped, 0}), Error);
  EXPECT_THROW(ops::glu(x, x, {Gate::clamped, std::numeric_limits<double>::infinity()}), Error);
  EXPECT_THROW(ops::glu(Tensor()), Error);
  EXPECT_THROW(ops::glu(Tensor::zeros({})), Error);
  EXPECT_THROW(ops::glu(Tensor::zeros({4}, DType::i32)), Error);
  EXPECT_THROW(ops::glu(x, Tensor()), Error);
  EXPECT_THROW(ops::glu(Tensor(), x), Error);
  EXPECT_THROW(ops::glu(x, Tensor::zeros({3})), Error);
  EXPECT_THROW(ops::glu(x, Tensor::zeros({2, 3}, DType::bf16)), Error);
  EXPECT_THROW(ops::glu(x, Tensor::zeros({2, 3}, DType::f32, Device::meta)), Error);
}

}  // namespace
}  // namespace heddle::harness::glu_cases
