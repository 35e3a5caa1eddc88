#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax.kernels.h"

namespace heddle::harness::softmax_cases {
namespace {

using Op = Tensor (*)(const Tensor&);

const Shape kShapes[] = {{1}, {5, 1}, {0, 5}, {7, 33}, {2, 3, 67}, {3, 5003}, {301, 131}};

void add(const char* name, Op op, Op reference, double slack) {
  for (const Shape& shape : kShapes) {
    Case c;
    c.op = "softmax";
    c.name = std::string(name) + to_string(shape);
    c.inputs = {act(shape)};
    c.reduction = shape.back();
    c.slack = slack;
    c.run = [op](std::span<const Tensor> in) { return Tensors{op(in[0])}; };
    c.reference = [reference](std::span<const Tensor> in) { return Tensors{reference(in[0])}; };
    add_case(c);
  }
}

const bool registered = [] {
  add("softmax", ops::softmax, ops::reference::softmax, 1);
  // In bf16 the gradient starts from y rounded to an absolute error of |y|·2⁻⁹, |y| about log C,
  // and exp(y) makes a relative error of that.
  add("log_softmax", ops::log_softmax, ops::reference::log_softmax, 4);

  using K = cpu::SoftmaxKernels;
  using G = cpu::SoftmaxGradientKernels;
  add_kernel_mutant<K>("softmax", "the last row is left out", [](K& k) {
    k.forward = [](const cpu::SoftmaxArgs& a) noexcept {
      cpu::SoftmaxArgs b = a;
      b.rows -= b.rows > 1 ? 1 : 0;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("softmax", "log_softmax is differentiated as softmax", [](G& k) {
    k.backward = [](const cpu::SoftmaxBackwardArgs& a) noexcept {
      cpu::SoftmaxBackwardArgs b = a;
      b.logarithm = false;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<G>("softmax", "rows are taken as one", [](G& k) {
    k.backward = [](const cpu::SoftmaxBackwardArgs& a) noexcept {
      cpu::SoftmaxBackwardArgs b = a;
      b.columns *= b.rows;
      b.rows = b.rows > 0 ? 1 : 0;
      sound<G>().backward(b);
    };
  });
  return true;
}();

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Result {
  std::vector<double> y, dx;
};

Result run(Op op, DType dtype, const std::vector<double>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  Tensor x = make_tensor({1, n}, dtype, values);
  x.set_requires_grad(true);
  Tape tape;
  const Tensor y = op(x);
  const Tensor dy = make_tensor({1, n}, dtype, normals(n, 3));
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  return {to_doubles(y), to_doubles(x.grad())};
}

TEST(softmax_rows, NothingButMinusInfinity) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const std::size_t n : {1u, 7u, 40u}) {
      const std::vector<double> row(n, -kInf);
      const Result plain = run(ops::softmax, dtype, row);
      const Result logarithm = run(ops::log_softmax, dtype, row);
      EXPECT_EQ(plain.y, std::vector<double>(n, 0.0));
      EXPECT_EQ(plain.dx, std::vector<double>(n, 0.0));
      EXPECT_EQ(logarithm.y, row);
      EXPECT_EQ(logarithm.dx, std::vector<double>(n, 0.0));
    }
}

TEST(softmax_rows, MaskedElementsAndLargeValues) {
  const Result r = run(ops::softmax, DType::f32, {-kInf, 30000, 30000, -30000, -kInf});
  EXPECT_EQ(r.y, (std::vector<double>{0, 0.5, 0.5, 0, 0}));
  EXPECT_EQ(r.dx[0], 0);
  EXPECT_EQ(r.dx[4], 0);
  const Result l = run(ops::log_softmax, DType::f32, {-kInf, 30000, 29999});
  EXPECT_EQ(l.y[0], -kInf);
  EXPECT_NEAR(l.y[1], -std::log1p(std::exp(-1.0)), 1e-6);
  for (const double g : l.dx) EXPECT_TRUE(std::isfinite(g));
}

TEST(softmax_rows, NaNStays) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Op op : {Op{ops::softmax}, Op{ops::log_softmax}}) {
    EXPECT_TRUE(std::isnan(run(op, DType::f32, {1, nan, 2}).y[0]));
    EXPECT_TRUE(std::isnan(run(op, DType::f32, {-kInf, nan, -kInf}).y[1]));
  }
}

// The cases of the harness are too small to be written past the caches.
TEST(softmax_rows, StreamingChangesNothing) {
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::int64_t columns : {64, 4160, 50})
        for (const bool logarithm : {false, true}) {
          const auto& k = cpu::native_kernels<cpu::SoftmaxKernels>(isa);
          const auto& gradient = cpu::native_kernels<cpu::SoftmaxGradientKernels>(isa);
          const Shape shape{19, columns};
          const Tensor x = make_tensor(shape, dtype, normals(19 * columns, 1));
          Tensor y[2], dx[2];
          for (int stream = 0; stream < 2; ++stream) {
            y[stream] = Tensor::empty(shape, dtype);
            dx[stream] = Tensor::empty(shape, dtype);
            k.forward(
                {dtype, logarithm, stream == 1, 19, columns, x.raw(), y[stream].mutable_raw()});
            gradient.backward({dtype, logarithm, stream == 1, 19, columns, y[stream].raw(), x.raw(),
                               dx[stream].mutable_raw()});
          }
          EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
          EXPECT_EQ(to_doubles(dx[0]), to_doubles(dx[1]));
        }
}

TEST(softmax_rows, WrongCallsAreRefused) {
  EXPECT_THROW(ops::softmax({}), Error);
  EXPECT_THROW(ops::softmax(Tensor::zeros({})), Error);
  EXPECT_THROW(ops::softmax(Tensor::zeros({2, 3}, DType::i64)), Error);
  EXPECT_THROW(ops::log_softmax({}), Error);
  EXPECT_THROW(ops::log_softmax(Tensor::zeros({})), Error);
  EXPECT_EQ(ops::softmax(Tensor::zeros({3, 0})).shape(), (Shape{3, 0}));
}

}  // namespace
}  // namespace heddle::harness::softmax_cases
