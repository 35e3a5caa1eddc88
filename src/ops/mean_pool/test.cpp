#include <gtest/gtest.h>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/mean_pool/mean_pool.h"
#include "ops/mean_pool/mean_pool.kernels.h"

namespace heddle::harness::mean_pool_cases {
namespace {

Case pool_case(const std::string& name, const Shape& shape) {
  Case c;
  c.op = "mean_pool";
  c.name = name + to_string(shape);
  c.inputs = {act(shape)};
  c.reduction = std::max<std::int64_t>(shape[1], 1);
  return c;
}

void add_unmasked(const Shape& shape) {
  Case c = pool_case("all", shape);
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::mean_pool(in[0], {})}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::mean_pool(in[0], {})};
  };
  add_case(c);
}

void add_masked(const Shape& shape, DType dtype) {
  Case c = pool_case("masked " + std::string(to_string(dtype)) + " ", shape);
  std::vector<double> mask;
  for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i)
    mask.push_back(i % shape[1] == i / shape[1] % shape[1] ? 3 : i % 3 == 0 ? 1 : 0);
  c.inputs.push_back(given_index({shape[0], shape[1]}, mask, dtype));
  c.run = [](std::span<const Tensor> in) { return Tensors{ops::mean_pool(in[0], in[1])}; };
  c.reference = [](std::span<const Tensor> in) {
    return Tensors{ops::reference::mean_pool(in[0], in[1])};
  };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 5, 33}, Shape{0, 3, 4}, Shape{3, 4, 0},
                             Shape{3, 17, 290}, Shape{2, 300, 131}})
    add_unmasked(shape);
  for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
    add_masked({3, 7, 37}, dtype);
    add_masked({2, 130, 290}, dtype);
  }

  using K = cpu::MeanPoolKernels;
  using G = cpu::MeanPoolGradientKernels;
  add_kernel_mutant<K>("mean_pool", "the mask is not looked at", [](K& k) {
    k.forward = [](const cpu::MeanPoolArgs& a) noexcept {
      cpu::MeanPoolArgs b = a;
      b.mask = nullptr;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<G>("mean_pool", "masked positions get a gradient", [](G& k) {
    k.backward = [](const cpu::MeanPoolBackwardArgs& a) noexcept {
      cpu::MeanPoolBackwardArgs b = a;
      b.mask = nullptr;
      sound<G>().backward(b);
    };
  });
  add_kernel_mutant<K>("mean_pool", "the last sequence is left out", [](K& k) {
    k.forward = [](const cpu::MeanPoolArgs& a) noexcept {
      cpu::MeanPoolArgs b = a;
      b.batch -= b.batch > 0 ? 1 : 0;
      sound<K>().forward(b);
    };
  });
  return true;
}();

TEST(mean_pool_rows, NothingCounts) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Tensor x = make_tensor({2, 3, 5}, dtype, normals(30, 1));
    x.set_requires_grad(true);
    Tape tape;
    const Tensor y = ops::mean_pool(x, Tensor::from<std::uint8_t>({2, 3}, {0, 0, 0, 0, 7, 0}));
    const Tensor dy = make_tensor({2, 5}, dtype, normals(10, 2));
    tape.backward(std::span(&y, 1), std::span(&dy, 1));
    const auto v = to_doubles(x), mean = to_doubles(y), g = to_doubles(x.grad());
    const auto w = to_doubles(dy);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(mean[i], 0);
      EXPECT_EQ(mean[5 + i], v[20 + i]);
      EXPECT_EQ(g[20 + i], w[5 + i]);
    }
    for (std::size_t i = 0; i < 30; ++i) {
      if (i < 20 || i >= 25) {
        EXPECT_EQ(g[i], 0);
      }
    }
  }
  const Tensor none = ops::mean_pool(Tensor::zeros({2, 0, 3}), {});
  EXPECT_EQ(to_doubles(none), std::vector<double>(6, 0.0));
}

TEST(mean_pool_calls, WrongOnesAreRefused) {
  const Tensor x = Tensor::zeros({2, 3, 4});
  EXPECT_THROW(ops::mean_pool({}, {}), Error);
  EXPECT_THROW(ops::mean_pool(Tensor::zeros({2, 3}), {}), Error);
  EXPECT_THROW(ops::mean_pool(Tensor::zeros({2, 3, 4}, DType::i32), {}), Error);
  EXPECT_THROW(ops::mean_pool(x, Tensor::zeros({2, 3})), Error);
  EXPECT_THROW(ops::mean_pool(x, Tensor::zeros({3, 2}, DType::u8)), Error);
  EXPECT_THROW(ops::mean_pool(x, Tensor::zeros({2, 3}, DType::u8, Device::meta)), Error);
}

}  // namespace
}  // namespace heddle::harness::mean_pool_cases
