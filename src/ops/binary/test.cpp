#include <gtest/gtest.h>

#include <algorithm>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/binary/binary.h"
#include "ops/binary/binary.kernels.h"
#include "ops/unary/unary.h"

namespace heddle::harness::binary_cases {
namespace {

using Op = Tensor (*)(const Tensor&, const Tensor&);

struct Pair {
  const char* name;
  Shape a, b;
};

const Pair kPairs[] = {{"same", {5, 7}, {5, 7}},         {"row", {5, 37}, {37}},
                       {"column", {5, 37}, {5, 1}},      {"outer", {5, 1}, {1, 19}},
                       {"scalar", {3, 4}, {}},           {"left scalar", {}, {33}},
                       {"middle", {2, 1, 9}, {2, 3, 9}}, {"empty", {0, 3}, {1, 3}}};

void add(const char* name, Op op, double (*f)(double, double), Fill fill = Fill::normal) {
  for (const Pair& p : kPairs) {
    Case c;
    c.op = "binary";
    c.name = std::string(name) + " " + p.name;
    c.inputs = {act(p.a, fill), act(p.b, fill)};
    c.run = [op](std::span<const Tensor> in) { return Tensors{op(in[0], in[1])}; };
    c.reference = elementwise([f](std::span<const double> x) { return f(x[0], x[1]); });
    c.reduction = 64;
    // Gradients are composed of several bf16 steps.
    c.slack = 3;
    add_case(c);
  }
}

Case add_into_case() {
  Case c;
  c.op = "binary";
  c.name = "add_into";
  c.inputs = {act({3, 41}), act({3, 41})};
  c.run = [](std::span<const Tensor> in) {
    Tensor target = ops::scale(in[0], 2);
    ops::add_into(target, in[1]);
    return Tensors{target};
  };
  c.reference = elementwise([](std::span<const double> x) { return 2 * x[0] + x[1]; });
  c.gradient = false;
  c.f16 = false;  // the target is changed in place
  return c;
}

const bool registered = [] {
  add("add", ops::add, [](double a, double b) { return a + b; });
  add("sub", ops::sub, [](double a, double b) { return a - b; });
  add("mul", ops::mul, [](double a, double b) { return a * b; });
  add("div", ops::div, [](double a, double b) { return a / b; }, Fill::positive);
  add("maximum", ops::maximum, [](double a, double b) { return std::max(a, b); });
  add_case(add_into_case());

  Case large;
  large.op = "binary";
  large.name = "several chunks";
  large.inputs = {act({257, 193}), act({193})};
  large.run = [](std::span<const Tensor> in) { return Tensors{ops::mul(in[0], in[1])}; };
  large.reference = elementwise([](std::span<const double> x) { return x[0] * x[1]; });
  large.reduction = 257;
  large.slack = 2;
  add_case(large);

  using K = cpu::BinaryKernels;
  add_kernel_mutant<K>("binary", "sub adds", [](K& k) {
    k.forward = [](const cpu::BinaryArgs& a) noexcept {
      cpu::BinaryArgs b = a;
      if (b.kind == cpu::Binary::sub) b.kind = cpu::Binary::add;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("binary", "a broadcast operand is walked through", [](K& k) {
    k.forward = [](const cpu::BinaryArgs& a) noexcept {
      cpu::BinaryArgs b = a;
      // Reads b's first element for a whole row, whatever b's stride is.
      if (b.shape.rank() > 0) b.b_strides[b.shape.rank() - 1] = 0;
      sound<K>().forward(b);
    };
  });
  return true;
}();

// The cases of the harness are too small to be written past the caches.
TEST(binary_kernels, streaming_changes_nothing) {
  constexpr std::int64_t kCount = 16384 + 37;
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const Tensor a = make_tensor({kCount}, dtype, normals(kCount, 1));
      const Tensor b = make_tensor({kCount}, dtype, normals(kCount, 2));
      Tensor y[2];
      for (int i = 0; i < 2; ++i) {
        y[i] = Tensor::empty({kCount}, dtype);
        cpu::BinaryArgs args;
        args.dtype = dtype;
        args.stream = i == 1;
        args.shape = a.shape();
        args.a_strides = args.b_strides = args.y_strides = Strides{1};
        args.a = a.raw();
        args.b = b.raw();
        args.y = y[i].mutable_raw();
        cpu::native_kernels<cpu::BinaryKernels>(isa).forward(args);
      }
      EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
    }
}

}  // namespace
}  // namespace heddle::harness::binary_cases
