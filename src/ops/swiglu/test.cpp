#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/swiglu/swiglu.h"
#include "ops/swiglu/swiglu.kernels.h"

namespace heddle::harness::swiglu_cases {
namespace {

void add_apart(const Shape& shape) {
  Case c;
  c.op = "swiglu";
  c.name = "apart" + to_string(shape);
  c.inputs = {act(shape), act(shape)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::swiglu(in[0], in[1])}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::swiglu(in[0], in[1])};
  };
  add_case(c);
}

void add_packed(const Shape& shape) {
  Case c;
  c.op = "swiglu";
  c.name = "packed" + to_string(shape);
  c.inputs = {act(shape)};
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::swiglu(in[0])}; };
  c.reference = [](std::span<const Tensor> in) { return Tensors{ops::reference::swiglu(in[0])}; };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{7, 33}, Shape{2, 16411}})
    add_apart(shape);
  for (const Shape& shape : {Shape{2}, Shape{5, 2}, Shape{0, 4}, Shape{3, 0}, Shape{7, 66},
                             Shape{2, 3, 130}, Shape{150, 258}, Shape{2, 32806}})
    add_packed(shape);

  using K = cpu::SwigluKernels;
  add_kernel_mutant<K>("swiglu", "gate and up change places", [](K& k) {
    k.forward = [](const cpu::SwigluArgs& a) noexcept {
      cpu::SwigluArgs b = a;
      b.gate = a.up;
      b.up = a.gate;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("swiglu", "the gradients change places", [](K& k) {
    k.backward = [](const cpu::SwigluBackwardArgs& a) noexcept {
      cpu::SwigluBackwardArgs b = a;
      b.dgate = a.dup;
      b.dup = a.dgate;
      sound<K>().backward(b);
    };
  });
  add_kernel_mutant<K>("swiglu", "the last element is left out", [](K& k) {
    k.backward = [](const cpu::SwigluBackwardArgs& a) noexcept {
      cpu::SwigluBackwardArgs b = a;
      if (b.rows == 1 && b.columns > 1) b.columns -= 1;
      sound<K>().backward(b);
    };
  });
  return true;
}();

// The cases of the harness are too small to be written past the caches.
TEST(swiglu_kernels, StreamingChangesNothing) {
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::int64_t columns : {64, 50, 32}) {
        const cpu::SwigluKernels& k = cpu::native_kernels<cpu::SwigluKernels>(isa);
        const Shape shape{19, columns};
        const Tensor gate = make_tensor(shape, dtype, normals(19 * columns, 1));
        const Tensor up = make_tensor(shape, dtype, normals(19 * columns, 2));
        Tensor y[2], dgate[2], dup[2];
        for (int stream = 0; stream < 2; ++stream) {
          for (Tensor* t : {&y[stream], &dgate[stream], &dup[stream]})
            *t = Tensor::empty(shape, dtype);
          k.forward({dtype, stream == 1, 19, columns, columns, gate.raw(), up.raw(),
                     y[stream].mutable_raw()});
          k.backward({dtype, stream == 1, 1, 19 * columns, 0, gate.raw(), up.raw(), up.raw(),
                      dgate[stream].mutable_raw(), dup[stream].mutable_raw()});
        }
        EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
        EXPECT_EQ(to_doubles(dgate[0]), to_doubles(dgate[1]));
        EXPECT_EQ(to_doubles(dup[0]), to_doubles(dup[1]));
      }
}

TEST(swiglu_calls, WrongOnesAreRefused) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_THROW(ops::swiglu(x), Error);
  EXPECT_THROW(ops::swiglu(Tensor()), Error);
  EXPECT_THROW(ops::swiglu(Tensor::zeros({})), Error);
  EXPECT_THROW(ops::swiglu(Tensor::zeros({4}, DType::i32)), Error);
  EXPECT_THROW(ops::swiglu(x, Tensor()), Error);
  EXPECT_THROW(ops::swiglu(Tensor(), x), Error);
  EXPECT_THROW(ops::swiglu(x, Tensor::zeros({3})), Error);
  EXPECT_THROW(ops::swiglu(x, Tensor::zeros({2, 3}, DType::bf16)), Error);
  EXPECT_THROW(ops::swiglu(x, Tensor::zeros({2, 3}, DType::f32, Device::meta)), Error);
}

}  // namespace
}  // namespace heddle::harness::swiglu_cases
