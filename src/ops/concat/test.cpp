#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.kernels.h"
#include "ops/unary/unary.h"

namespace heddle::harness::concat_cases {
namespace {

struct Blocks {
  std::int64_t outer = 1, inner = 1;  // around the dimension
};

Blocks around(const Shape& shape, int dim) {
  Blocks b;
  for (int i = 0; i < dim; ++i) b.outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) b.inner *= shape[i];
  return b;
}

Tensors joined(std::span<const Tensor> in, int dim) {
  Shape shape = in[0].shape();
  const Blocks b = around(shape, dim);
  shape[dim] = 0;
  std::vector<std::vector<double>> values;
  for (const Tensor& x : in) {
    values.push_back(to_doubles(x));
    shape[dim] += x.shape()[dim];
  }
  std::vector<double> out;
  for (std::int64_t o = 0; o < b.outer; ++o)
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t run = in[i].shape()[dim] * b.inner;
      const auto first = values[i].begin() + o * run;
      out.insert(out.end(), first, first + run);
    }
  return {make_tensor(shape, DType::f64, out)};
}

void add_concat(const std::string& name, const std::vector<Shape>& shapes, int dim) {
  Case c;
  c.op = "concat";
  c.name = "concat " + name;
  for (const Shape& shape : shapes) c.inputs.push_back(act(shape));
  c.run = [dim](std::span<const Tensor> in) { return Tensors{ops::concat(in, dim)}; };
  const int d = dim < 0 ? dim + shapes[0].rank() : dim;
  c.reference = [d](std::span<const Tensor> in) { return joined(in, d); };
  add_case(c);
}

// The parts are squared, so that the gradient depends on where an element went; `drop` leaves the
// last one unused.
void add_split(const std::string& name, const Shape& shape, std::vector<std::int64_t> sizes,
               int dim, bool drop = false) {
  Case c;
  c.op = "concat";
  c.name = "split " + name;
  c.inputs = {act(shape)};
  c.run = [=](std::span<const Tensor> in) {
    Tensors parts = ops::split(in[0], sizes, dim);
    if (drop) parts.pop_back();
    for (Tensor& part : parts) part = ops::square(part);
    return parts;
  };
  const int d = dim < 0 ? dim + shape.rank() : dim;
  c.reference = [=](std::span<const Tensor> in) {
    Tensors parts;
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      const Tensor part = views::slice(in[0], d, begin, begin + size);
      begin += size;
      std::vector<double> v = to_doubles(part);
      for (double& x : v) x *= x;
      parts.push_back(make_tensor(part.shape(), DType::f64, v));
    }
    if (drop) parts.pop_back();
    return parts;
  };
  c.slack = 2;  // the square's rounding, twice
  add_case(c);
}

const bool registered = [] {
  add_concat("rows", {{2, 5}, {1, 5}, {4, 5}}, 0);
  add_concat("columns", {{3, 2}, {3, 7}}, -1);
  add_concat("middle", {{2, 3, 5}, {2, 1, 5}}, 1);
  add_concat("one", {{3, 2}}, 0);
  add_concat("with nothing", {{2, 0}, {2, 3}}, 1);
  add_concat("several chunks", {{2, 9000, 3}, {2, 11, 3}}, 1);
  add_split("columns", {3, 9}, {2, 4, 3}, -1);
  add_split("rows", {6, 5}, {1, 0, 5}, 0);
  add_split("middle", {2, 7, 5}, {3, 4}, 1);
  add_split("an unused part", {3, 9}, {2, 4, 3}, 1, true);
  add_split("several chunks", {40, 600}, {100, 500}, 1);
  using K = cpu::CopyKernels;
  add_kernel_mutant<K>("concat", "what is copied ignores its strides", [](K& k) {
    k.copy = [](const cpu::CopyArgs& a) noexcept {
      cpu::CopyArgs b = a;
      b.dst_strides = contiguous_strides(b.shape);
      sound<K>().copy(b);
    };
  });
  return true;
}();

TEST(concat_values, the_same_tensor_twice) {
  Tensor x = Tensor::from<float>({2}, {1, 2});
  x.set_requires_grad(true);
  Tape tape;
  const Tensor parts[] = {x, x};
  const Tensor y = ops::concat(parts, 0);
  const Tensor dy = Tensor::from<float>({4}, {1, 10, 100, 1000});
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  EXPECT_EQ(to_doubles(x.grad()), (std::vector<double>{101, 1010}));
}

TEST(concat_values, split_shares_the_storage) {
  Tensor x = Tensor::zeros({2, 4});
  const std::int64_t sizes[] = {1, 3};
  Tensors parts = ops::split(x, sizes, 1);
  parts[1].mutable_data<float>()[0] = 5;
  EXPECT_EQ(to_doubles(x)[1], 5);
}

TEST(concat_errors, refuses) {
  const Tensor a = Tensor::zeros({2, 3});
  const auto join = [](std::vector<Tensor> parts, int dim) { return ops::concat(parts, dim); };
  EXPECT_THROW(join({}, 0), Error);
  EXPECT_THROW(join({Tensor(), a}, 0), Error);
  EXPECT_THROW(join({a, Tensor()}, 0), Error);
  EXPECT_THROW(join({a, Tensor::zeros({2, 4})}, 0), Error);
  EXPECT_THROW(join({a, Tensor::zeros({2, 3}, DType::f64)}, 0), Error);
  EXPECT_THROW(join({a, Tensor::zeros({6})}, 0), Error);
  EXPECT_THROW(join({a, a}, 2), Error);
  EXPECT_THROW(join({Tensor::zeros({})}, 0), Error);
  EXPECT_THROW(join({a, Tensor::zeros({2, 3}, DType::f32, Device::meta)}, 0), Error);
  const auto cut = [&](std::vector<std::int64_t> sizes, int dim) {
    return ops::split(a, sizes, dim);
  };
  EXPECT_THROW(cut({1, 1}, 1), Error);
  EXPECT_THROW(cut({4, -1}, 1), Error);
  EXPECT_THROW(cut({}, 1), Error);
  EXPECT_THROW(cut({3}, 5), Error);
  EXPECT_THROW(ops::split(Tensor(), std::vector<std::int64_t>{1}, 0), Error);
}

}  // namespace
}  // namespace heddle::harness::concat_cases
