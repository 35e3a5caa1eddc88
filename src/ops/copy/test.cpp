#include "harness/harness.h"
#include "harness/values.h"
#include "ops/copy/copy.h"
#include "ops/copy/copy.kernels.h"
#include "ops/unary/unary.h"

namespace heddle::harness::copy_cases {
namespace {

void add(const char* name, const Shape& shape, Tensor (*op)(const Tensor&), double slack = 1) {
  Case c;
  c.op = "copy";
  c.name = std::string(name) + to_string(shape);
  c.inputs = {act(shape)};
  c.run = [op](std::span<const Tensor> in) { return Tensors{op(in[0])}; };
  c.reference = elementwise([](std::span<const double> x) { return x[0]; });
  c.slack = slack;
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape :
       {Shape{}, Shape{0, 2}, Shape{3, 5}, Shape{2, 3, 33}, Shape{65, 40}, Shape{130, 257}}) {
    add("contiguous", shape, ops::contiguous);
    add("clone", shape, ops::clone);
  }
  const Shape odd{5, 19};
  add("to f64 and back", odd,
      [](const Tensor& x) { return ops::cast(ops::cast(x, DType::f64), x.dtype()); });
  // In f64 and f32 these lose digits, by the epsilon of what they pass through.
  const auto narrow = [](const char* name, DType through, double epsilon) {
    Case c;
    c.op = "copy";
    c.name = name;
    c.inputs = {act({5, 19})};
    c.run = [through](std::span<const Tensor> in) {
      return Tensors{ops::cast(ops::cast(in[0], through), DType::f32)};
    };
    c.reference = elementwise([](std::span<const double> x) { return x[0]; });
    c.slack = epsilon / 0x1p-23;
    add_case(c);
  };
  narrow("through bf16", DType::bf16, 0x1p-8);
  narrow("through f16", DType::f16, 0x1p-10);

  using K = cpu::CopyKernels;
  add_kernel_mutant<K>("copy", "adds where it should overwrite", [](K& k) {
    k.copy = [](const cpu::CopyArgs& a) noexcept {
      cpu::CopyArgs b = a;
      b.accumulate = a.src_dtype == a.dst_dtype && a.src_dtype != DType::i64;
      sound<K>().copy(b);
    };
  });
  add_kernel_mutant<K>("copy", "ignores the source's strides", [](K& k) {
    k.copy = [](const cpu::CopyArgs& a) noexcept {
      cpu::CopyArgs b = a;
      b.src_strides = contiguous_strides(b.shape);
      sound<K>().copy(b);
    };
  });
  return true;
}();

}  // namespace
}  // namespace heddle::harness::copy_cases
