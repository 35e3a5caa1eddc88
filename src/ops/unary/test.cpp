#include <cmath>
#include <numbers>

#include "harness/harness.h"
#include "ops/unary/unary.h"
#include "ops/unary/unary.kernels.h"

namespace heddle::harness {
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
  add("scale", [](const Tensor& x) { return ops::scale(x, -1.75); },
      [](double x) { return -1.75 * x; });
  add("shift", [](const Tensor& x) { return ops::shift(x, 0.75); },
      [](double x) { return x + 0.75; });
  add("relu", ops::relu, [](double x) { return x > 0 ? x : 0; }, Fill::off_zero);
  add("gelu", ops::gelu,
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
  add("gelu_tanh", ops::gelu_tanh, gelu_tanh);
  add("silu", ops::silu, [](double x) { return x * sigmoid(x); });
  add("tanh", ops::tanh, [](double x) { return std::tanh(x); });
  add("sigmoid", ops::sigmoid, sigmoid);
  add("softcap", [](const Tensor& x) { return ops::softcap(x, 1.5); },
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
  add_kernel_mutant<K>("unary", "gelu differentiated as its tanh approximation", [](K& k) {
    k.backward = [](const cpu::UnaryBackwardArgs& a) noexcept {
      cpu::UnaryBackwardArgs b = a;
      if (b.kind == cpu::Unary::gelu) b.kind = cpu::Unary::gelu_tanh;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>("unary", "softcap's gradient forgets the cap", [](K& k) {
    k.backward = [](const cpu::UnaryBackwardArgs& a) noexcept {
      cpu::UnaryBackwardArgs b = a;
      if (b.kind == cpu::Unary::softcap) b.parameter = 1;
      sound<K>().backward(b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness
