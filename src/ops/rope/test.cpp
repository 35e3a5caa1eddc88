#include <gtest/gtest.h>

#include <cmath>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope.kernels.h"

namespace heddle::harness::rope_cases {
namespace {

struct Sizes {
  const char* name;
  Shape x;  // [B, T, H, D]
  std::int64_t table, rotated;
};

void add(const Sizes& s, ops::Pairing pairing, const std::string& name, std::vector<In> positions,
         std::int64_t first = 0) {
  Case c;
  c.op = "rope";
  c.name = std::string(pairing == ops::Pairing::half ? "half " : "interleaved ") + s.name + name;
  // Any numbers do as cosine and sine: the op is linear in both.
  const Shape table{s.table, s.rotated / 2};
  c.inputs = {act(s.x), constant(param(table)), constant(param(table))};
  for (In& in : positions) c.inputs.push_back(std::move(in));
  const auto options = [=](std::span<const Tensor> in) {
    return ops::RopeOptions{pairing, first, in.size() > 3 ? in[3] : Tensor()};
  };
  c.run = [=](std::span<const Tensor> in) {
    return Tensors{ops::rope(in[0], in[1], in[2], options(in))};
  };
  c.reference = [=](std::span<const Tensor> in) {
    return Tensors{ops::reference::rope(in[0], in[1], in[2], options(in))};
  };
  c.reduction = 2;
  add_case(c);
}

const bool registered = [] {
  for (const ops::Pairing pairing : {ops::Pairing::half, ops::Pairing::interleaved}) {
    const Sizes whole{"", {2, 3, 2, 10}, 9, 10};
    add(whole, pairing, "all of the head", {});
    add(whole, pairing, "from position 4", {}, 4);
    add(whole, pairing, "own positions", {index({3}, 9)});
    add(whole, pairing, "positions by sequence", {index({2, 3}, 9, DType::i32)});
    add({"", {1, 4, 3, 37}, 4, 22}, pairing, "a part of the head", {});
    add({"", {1, 2, 1, 8}, 2, 0}, pairing, "nothing of the head", {});
    add({"", {1, 1, 1, 2}, 1, 2}, pairing, "one token", {});
    add({"", {0, 3, 2, 4}, 3, 4}, pairing, "no sequences", {});
    add({"", {2, 0, 2, 4}, 3, 4}, pairing, "no tokens", {});
    add({"", {1, 2, 2, 600}, 2, 600}, pairing, "wide heads", {});
    add({"", {2, 90, 4, 64}, 90, 64}, pairing, "several chunks", {});
  }
  using K = cpu::RopeKernels;
  add_kernel_mutant<K>("rope", "the gradient turns the same way", [](K& k) {
    k.rotate = [](const cpu::RopeArgs& a) noexcept {
      cpu::RopeArgs b = a;
      b.direction = 1;
      sound<K>().rotate(b);
    };
  });
  add_kernel_mutant<K>("rope", "positions start at 0 whatever is asked for", [](K& k) {
    k.rotate = [](const cpu::RopeArgs& a) noexcept {
      cpu::RopeArgs b = a;
      b.first_position = 0;
      sound<K>().rotate(b);
    };
  });
  add_kernel_mutant<K>("rope", "all sequences have the positions of the first", [](K& k) {
    k.rotate = [](const cpu::RopeArgs& a) noexcept {
      cpu::RopeArgs b = a;
      b.position_step = 0;
      sound<K>().rotate(b);
    };
  });
  add_kernel_mutant<K>("rope", "pairs are always halves", [](K& k) {
    k.rotate = [](const cpu::RopeArgs& a) noexcept {
      cpu::RopeArgs b = a;
      b.interleaved = false;
      sound<K>().rotate(b);
    };
  });
  return true;
}();

TEST(rope_values, tables) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const ops::RopeTables t = ops::rope_tables(100, 6, 10000, dtype);
    EXPECT_EQ(t.cos.shape(), (Shape{100, 3}));
    EXPECT_EQ(t.sin.dtype(), dtype);
    const auto c = to_doubles(t.cos);
    const auto s = to_doubles(t.sin);
    for (std::size_t p = 0; p < 100; ++p)
      for (std::size_t i = 0; i < 3; ++i) {
        const double angle = static_cast<double>(p) / std::pow(10000, static_cast<double>(i) / 3);
        EXPECT_NEAR(c[p * 3 + i], std::cos(angle), 1e-7);
        EXPECT_NEAR(s[p * 3 + i], std::sin(angle), 1e-7);
      }
  }
  EXPECT_EQ(ops::rope_tables(7, 4, 1e4, DType::f32, Device::meta).cos.device(), Device::meta);
}

// Its purpose: the product of a rotated query and key depends on their distance only.
TEST(rope_values, products_depend_on_the_distance) {
  const ops::RopeTables t = ops::rope_tables(50, 8, 10000, DType::f64);
  const Tensor q = make_tensor({1, 1, 1, 8}, DType::f64, normals(8, 1));
  const Tensor k = make_tensor({1, 1, 1, 8}, DType::f64, normals(8, 2));
  for (const ops::Pairing pairing : {ops::Pairing::half, ops::Pairing::interleaved}) {
    const auto product = [&](std::int64_t m, std::int64_t n) {
      const auto a = to_doubles(ops::rope(q, t.cos, t.sin, {pairing, m, {}}));
      const auto b = to_doubles(ops::rope(k, t.cos, t.sin, {pairing, n, {}}));
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    EXPECT_NEAR(product(10, 3), product(47, 40), 1e-12);
    EXPECT_GT(std::abs(product(10, 3) - product(10, 4)), 1e-3);
  }
}

// A slice of a joint projection is taken as it is, without a copy.
TEST(rope_values, takes_slices) {
  const ops::RopeTables t = ops::rope_tables(5, 4, 10000);
  const Tensor joint = make_tensor({2, 5, 3, 2, 4}, DType::f32, normals(240, 3));
  const Tensor q = views::reshape(views::slice(joint, 2, 1, 2), {2, 5, 2, 4});
  EXPECT_FALSE(q.contiguous());
  const Tensor copy = make_tensor({2, 5, 2, 4}, DType::f32, to_doubles(q));
  EXPECT_EQ(to_doubles(ops::rope(q, t.cos, t.sin)), to_doubles(ops::rope(copy, t.cos, t.sin)));
}

TEST(rope_errors, refuses) {
  const Tensor x = Tensor::zeros({2, 3, 1, 4});
  const Tensor t = Tensor::zeros({5, 2});
  const auto with = [&](std::int64_t first, Tensor positions) {
    return ops::rope(x, t, t, {ops::Pairing::half, first, std::move(positions)});
  };
  EXPECT_THROW(with(3, {}), Error);
  EXPECT_THROW(with(-1, {}), Error);
  EXPECT_THROW(with(0, Tensor::from<std::int64_t>({3}, {0, 5, 1})), Error);
  EXPECT_THROW(with(0, Tensor::zeros({2}, DType::i64)), Error);
  EXPECT_THROW(with(0, Tensor::zeros({3})), Error);
  EXPECT_THROW(with(1, Tensor::zeros({3}, DType::i64)), Error);
  EXPECT_THROW(ops::rope(Tensor(), t, t), Error);
  EXPECT_THROW(ops::rope(Tensor::zeros({3, 1, 4}), t, t), Error);
  EXPECT_THROW(ops::rope(x, Tensor::zeros({5, 3}), Tensor::zeros({5, 3})), Error);
  EXPECT_THROW(ops::rope(x, t, Tensor::zeros({5, 1})), Error);
  EXPECT_THROW(ops::rope(x, t, Tensor()), Error);
  EXPECT_THROW(ops::rope(x, Tensor::zeros({5, 2}, DType::f64), t), Error);
  EXPECT_THROW(ops::rope_tables(-1, 4, 1e4), Error);
  EXPECT_THROW(ops::rope_tables(4, 3, 1e4), Error);
  EXPECT_THROW(ops::rope_tables(4, 4, 0), Error);
  EXPECT_THROW(ops::rope_tables(4, 4, 1e4, DType::bf16), Error);
}

}  // namespace
}  // namespace heddle::harness::rope_cases
