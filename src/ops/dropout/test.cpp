#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout.kernels.h"

namespace heddle::harness::dropout_cases {
namespace {

constexpr RandomKey kKey{0xfedcba9876543210u, 3, 17};

void add(const std::string& name, const Shape& shape, double p) {
  Case c;
  c.op = "dropout";
  c.name = name + to_string(shape);
  c.inputs = {act(shape)};
  c.run = [p](std::span<const Tensor> in) { return Tensors{ops::dropout(in[0], p, kKey)}; };
  c.reference = [p](std::span<const Tensor> in) {
    std::vector<double> v = to_doubles(in[0]);
    const double threshold = std::clamp(std::round(p * 65536), 1.0, 65535.0);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::uint32_t word = philox(kKey, i / 8)[i / 2 % 4];
      const std::uint32_t number = i % 2 == 0 ? word & 0xffffu : word >> 16;
      v[i] = p == 1 || number < threshold ? 0 : v[i] * 65536 / (65536 - threshold);
    }
    return Tensors{make_tensor(in[0].shape(), DType::f64, v)};
  };
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{2, 3, 41}, Shape{3, 16411}})
    add("0.3 ", shape, 0.3);
  add("0.9 ", {7, 9}, 0.9);
  add("1 ", {7, 9}, 1);
  // Rounded to 2^-16, but to neither of the ends.
  add("1e-9 ", {3, 16411}, 1e-9);
  add("1 - 1e-9 ", {3, 16411}, 1 - 1e-9);
  using K = cpu::DropoutKernels;
  add_kernel_mutant<K>("dropout", "what is kept is not scaled", [](K& k) {
    k.forward = [](const cpu::DropoutArgs& a) noexcept {
      cpu::DropoutArgs b = a;
      b.scale = 1;
      sound<K>().forward(b);
    };
  });
  add_kernel_mutant<K>("dropout", "the step is left out of the key", [](K& k) {
    k.forward = [](const cpu::DropoutArgs& a) noexcept {
      cpu::DropoutArgs b = a;
      b.key.step = 0;
      sound<K>().forward(b);
    };
  });
  // Every second call, the backward pass among them, draws from another stream.
  add_kernel_mutant<K>("dropout", "the backward pass draws another mask", [](K& k) {
    k.forward = [](const cpu::DropoutArgs& a) noexcept {
      static bool second = false;
      cpu::DropoutArgs b = a;
      if (second) b.key.op += 1;
      second = !second;
      sound<K>().forward(b);
    };
  });
  return true;
}();

TEST(dropout_values, keeps_the_share_and_the_mean) {
  const Tensor x = Tensor::full({1000, 100}, 1);
  double kept = 0, sum = 0;
  for (const double v : to_doubles(ops::dropout(x, 0.2, kKey))) {
    kept += v != 0 ? 1 : 0;
    sum += v;
  }
  EXPECT_NEAR(kept / 1e5, 0.8, 4 * std::sqrt(0.16 / 1e5));
  EXPECT_NEAR(sum / 1e5, 1, 5 * std::sqrt(0.16 / 1e5));
}

TEST(dropout_values, p_of_zero_gives_x) {
  const Tensor x = Tensor::full({3}, 2);
  EXPECT_EQ(ops::dropout(x, 0, kKey).impl(), x.impl());
}

TEST(dropout_errors, refuses) {
  const Tensor x = Tensor::zeros({3});
  EXPECT_THROW(ops::dropout(x, -0.1, kKey), Error);
  EXPECT_THROW(ops::dropout(x, 1.1, kKey), Error);
  EXPECT_THROW(ops::dropout(x, std::numeric_limits<double>::quiet_NaN(), kKey), Error);
  EXPECT_THROW(ops::dropout(Tensor(), 0.5, kKey), Error);
  EXPECT_THROW(ops::dropout(Tensor::zeros({3}, DType::i32), 0.5, kKey), Error);
}

// The cases of the harness are too small to be written past the caches.
TEST(dropout_values, streaming_changes_nothing) {
  constexpr std::int64_t kCount = 16384 + 37;
  for (const cpu::Isa isa : cpu::available_isas())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const Tensor x = make_tensor({kCount}, dtype, normals(kCount, 1));
      Tensor y[2];
      for (int i = 0; i < 2; ++i) {
        y[i] = Tensor::empty({kCount}, dtype);
        cpu::native_kernels<cpu::DropoutKernels>(isa).forward(
            {dtype, i == 1, kCount, 1u << 14, 2, kKey, x.raw(), y[i].mutable_raw()});
      }
      EXPECT_EQ(to_doubles(y[0]), to_doubles(y[1]));
    }
}

}  // namespace
}  // namespace heddle::harness::dropout_cases
