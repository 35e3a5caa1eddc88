// Masks of pairs, and queries that begin anywhere: numbers worked out by hand, and what a mask
// costs.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "heddle/memory.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle::ops {
namespace pair_masks {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Queries of zeros, so that all scores are 0 before the mask, and values 1, 10, 100.
struct Zeros {
  Tensor q, k, v;
  explicit Zeros(DType dtype, std::int64_t queries, std::int64_t batch = 1, std::int64_t heads = 1)
      : q(Tensor::zeros({batch, queries, heads, 1}, dtype)),
        k(cast(contiguous(broadcast_to(three(2, -1, 3), {batch, 3, 1, 1})), dtype)),
        v(cast(contiguous(broadcast_to(three(1, 10, 100), {batch, 3, 1, 1})), dtype)) {}

  static Tensor three(double a, double b, double c) {
    return Tensor::from<double>({1, 3, 1, 1}, {a, b, c});
  }
};

std::vector<double> doubles(const Tensor& t) {
  return cast(contiguous(t), DType::f64).to_vector<double>();
}

void expect_near(const Tensor& got, const std::vector<double>& wanted, double tolerance) {
  const std::vector<double> v = doubles(got);
  ASSERT_EQ(v.size(), wanted.size());
  for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], wanted[i], tolerance) << i;
}

struct Outcome {
  Tensor y, dmask, dv;
};

Outcome run(Zeros z, Tensor mask, const std::vector<double>& cotangent) {
  AttentionOptions o;
  for (Tensor* t : {&mask, &z.v}) t->set_requires_grad(true);
  o.additive_mask = mask;
  Tape tape;
  const Tensor y = attention(z.q, z.k, z.v, o);
  const Tensor dy =
      cast(Tensor::from<double>(y.shape(), std::span<const double>(cotangent)), y.dtype());
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  return {y.detach(), mask.grad(), z.v.grad()};
}

// Weights 1/3, 2/3 and 0: y = 7. With dy = 3, dS = w·(3·v - 21). The second row sees nothing.
TEST(AdditiveMask, GivesWhatIsWorkedOutByHand) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor mask = cast(
        Tensor::from<double>({1, 1, 2, 3}, {0, std::log(2.0), -kInf, -kInf, -kInf, -kInf}), dtype);
    const Outcome got = run(Zeros(dtype, 2), clone(mask), {3, 5});
    const double tolerance = dtype == DType::f64 ? 1e-13 : 1e-5;
    expect_near(got.y, {7, 0}, tolerance);
    expect_near(got.dmask, {-6, 6, 0, 0, 0, 0}, tolerance);
    expect_near(got.dv, {1, 2, 0}, tolerance);
  }
}

// Two sequences with two heads each, and cotangents 1 to 4 of them: 10 / 3 of the gradient above.
TEST(AdditiveMask, AddsUpTheGradientsOfThoseWhoShareIt) {
  const std::vector<double> row = {0, std::log(2.0), -kInf};
  const Tensor one = Tensor::from<double>({1, 1, 1, 3}, std::span<const double>(row));
  const auto over = [&](std::int64_t batch, std::int64_t heads) {
    return clone(contiguous(broadcast_to(one, {batch, heads, 1, 3})));
  };
  const auto gradient = [&](const Tensor& mask) {
    return run(Zeros(DType::f64, 1, 2, 2), mask, {1, 2, 3, 4}).dmask;
  };
  expect_near(gradient(over(1, 1)), {-20, 20, 0}, 1e-12);
  expect_near(gradient(over(1, 2)), {-8, 8, 0, -12, 12, 0}, 1e-12);
  expect_near(gradient(over(2, 1)), {-6, 6, 0, -14, 14, 0}, 1e-12);
  expect_near(gradient(over(2, 2)), {-2, 2, 0, -4, 4, 0, -6, 6, 0, -8, 8, 0}, 1e-12);
}

// Numbers as low as they come are no infinities: where nothing else is to be seen, all are alike.
TEST(AdditiveMask, ARowOfVeryLowNumbersHasWeights) {
  const double lowest = std::numeric_limits<float>::lowest();
  for (const double low : {-1e4, -1e9, -1e30, lowest})
    for (const std::int64_t queries : {1, 9}) {
      const auto rows = static_cast<std::size_t>(queries);
      const Outcome got = run(Zeros(DType::f32, queries), Tensor::full({1, 1, queries, 3}, low),
                              std::vector<double>(rows, 3));
      expect_near(got.y, std::vector<double>(rows, 37), 1e-3);
      const double n = static_cast<double>(queries);
      expect_near(got.dv, {n, n, n}, 1e-4);
      for (std::size_t i = 0; i < rows; ++i)
        expect_near(
            slice(got.dmask, 2, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1),
            {-36, -27, 63}, 1e-3);
    }
}

// Means of what the holes leave over.
TEST(AllowedPairs, HideAnyPattern) {
  const Zeros z(DType::f32, 9, 1, 2);
  std::vector<std::uint8_t> allowed;
  for (int i = 0; i < 9; ++i)  // query i sees the keys whose bits are set in i
    for (int j = 0; j < 3; ++j) allowed.push_back(i >> j & 1);
  AttentionOptions o;
  o.mask.allowed = Tensor::from<std::uint8_t>({1, 1, 9, 3}, std::span<const std::uint8_t>(allowed));
  const std::vector<double> each = {0, 1, 10, 5.5, 100, 50.5, 55, 37, 0};
  std::vector<double> wanted;
  for (const double v : each) wanted.insert(wanted.end(), {v, v});
  expect_near(attention(z.q, z.k, z.v, o), wanted, 1e-4);
  o.mask.causal = true;  // and both masks count: query i sees no key after i - 3
  o.mask.first_query = -3;
  const std::vector<double> causal = {0, 0, 0, 1, 0, 50.5, 55, 37, 0};
  wanted.clear();
  for (const double v : causal) wanted.insert(wanted.end(), {v, v});
  expect_near(attention(z.q, z.k, z.v, o), wanted, 1e-4);
}

// Query i sees the keys up to its position.
TEST(FirstQueries, MayBeBeforeTheFirstKey) {
  const Zeros z(DType::f32, 4, 2);
  AttentionOptions o;
  o.mask.causal = true;
  o.mask.first_query = -2;
  expect_near(attention(z.q, z.k, z.v, o), {0, 0, 1, 5.5, 0, 0, 1, 5.5}, 1e-4);
  o.mask.first_queries = Tensor::from<std::int64_t>({2}, {1, 3});
  expect_near(attention(z.q, z.k, z.v, o), {0, 1, 5.5, 37, 5.5, 37, 37, 37}, 1e-4);
  o.mask.look_back = 0;
  expect_near(attention(z.q, z.k, z.v, o), {0, 1, 10, 100, 10, 100, 0, 0}, 1e-4);
  o.mask.first_query = -0x7fffffff;
  expect_near(attention(z.q, z.k, z.v, o), std::vector<double>(8, 0), 0);
  o.mask.first_query = 0x7fffffff;
  expect_near(attention(z.q, z.k, z.v, o), std::vector<double>(8, 0), 0);
}

// Products 2·k = 4, -2 and 6, halved, capped at 2, with biases and a mask; key 2 is hidden.
TEST(AttentionScores, AreThoseBeforeTheSoftmax) {
  const Tensor q = Tensor::from<double>({1, 2, 1, 1}, {7, 2});
  const Tensor k = Tensor::from<double>({1, 3, 1, 1}, {2, -1, 3});
  AttentionOptions o;
  o.scale = 0.5;
  expect_near(attention_scores(q, k, o, {0, 1, 1}), {2, -1, 3}, 1e-15);
  o.softcap = 2;
  o.relative_bias = Tensor::from<double>({1, 4}, {10, 20, 30, 40});
  o.additive_mask = Tensor::from<double>({1, 1, 2, 3}, {0, 0, 0, 0.25, 0.5, 0.75});
  o.mask.allowed = Tensor::from<std::uint8_t>({1, 1, 2, 3}, {1, 1, 1, 1, 1, 0});
  const std::vector<double> got = doubles(attention_scores(q, k, o, {0, 1, 1}));
  EXPECT_NEAR(got[0], 2 * std::tanh(1.0) + 10 + 0.25, 1e-14);
  EXPECT_NEAR(got[1], 2 * std::tanh(-0.5) + 20 + 0.5, 1e-14);
  EXPECT_EQ(got[2], -kInf);
  o.softcap = 0;
  const Tensor w = Tensor::from<double>({1, 1}, {3});
  const std::vector<double> additive = doubles(additive_attention_scores(q, k, w, o, {0, 1, 1}));
  EXPECT_NEAR(additive[0], 0.5 * 3 * std::tanh(4.0) + 10 + 0.25, 1e-14);
  EXPECT_NEAR(additive[1], 0.5 * 3 * std::tanh(1.0) + 20 + 0.5, 1e-14);
  EXPECT_EQ(additive[2], -kInf);
}

std::int64_t peak_of(const std::function<void()>& body) {
  reset_peak_memory(Device::meta);
  const std::int64_t before = memory_use(Device::meta).live;
  body();
  return memory_use(Device::meta).peak - before;
}

// Nothing the size of the scores is made of the mask, and one gradient of its own size.
TEST(AdditiveMask, CostsWhatTheCallerBrings) {
  constexpr std::int64_t kTokens = 1024, kHeads = 8, kPairs = kTokens * kTokens;
  Tensor x = Tensor::zeros({2, kTokens, kHeads, 32}, DType::bf16, Device::meta);
  x.set_requires_grad(true);
  AttentionOptions plain, masked;
  plain.softcap = masked.softcap = 50;  // the same kernels
  masked.additive_mask = Tensor::zeros({1, 1, kTokens, kTokens}, DType::f32, Device::meta);
  masked.mask.allowed = Tensor::zeros({2, 1, kTokens, kTokens}, DType::u8, Device::meta);
  const auto step = [&](const AttentionOptions& o) {
    return peak_of([&] {
      Tape tape;
      const Tensor y = attention(x, x, x, o);
      tape.backward(std::span(&y, 1), std::span(&x, 1));
      x.clear_grad();
    });
  };
  const std::int64_t rows = 2 * kHeads * kTokens * 4;
  const std::int64_t without = step(plain);
  EXPECT_LE(step(masked), without + 2 * rows + 1024);
  masked.additive_mask.set_requires_grad(true);
  EXPECT_LE(step(masked), without + 2 * rows + 4 * kPairs + 1024);
}

TEST(MasksOfPairs, RefuseWhatDoesNotFit) {
  const Tensor q = Tensor::zeros({2, 3, 4, 5}), k = Tensor::zeros({2, 6, 2, 5});
  const auto refused = [&](const std::function<void(AttentionOptions&)>& change) {
    AttentionOptions o;
    change(o);
    try {
      (void)attention(q, k, k, o);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto added = [&](const Tensor& t) {
    return refused([&](AttentionOptions& o) { o.additive_mask = t; });
  };
  const auto holes = [&](const Tensor& t) {
    return refused([&](AttentionOptions& o) { o.mask.allowed = t; });
  };
  for (const Shape& good : {Shape{1, 1, 3, 6}, {2, 1, 3, 6}, {1, 4, 3, 6}, {2, 4, 3, 6}}) {
    EXPECT_EQ(added(Tensor::zeros(good)), "");
    EXPECT_EQ(holes(Tensor::zeros(good, DType::u8)), "");
  }
  for (const Shape& bad : {Shape{3, 6}, {1, 2, 3, 6}, {3, 1, 3, 6}, {1, 1, 6, 3}, {1, 1, 1, 6}}) {
    EXPECT_NE(added(Tensor::zeros(bad)).find("argument additive_mask"), std::string::npos);
    EXPECT_NE(holes(Tensor::zeros(bad, DType::u8)).find("argument allowed"), std::string::npos);
  }
  EXPECT_NE(added(Tensor::zeros({1, 1, 3, 6}, DType::f64)).find("additive_mask"),
            std::string::npos);
  EXPECT_NE(holes(Tensor::zeros({1, 1, 3, 6})).find("argument allowed"), std::string::npos);
  const std::string both = refused([&](AttentionOptions& o) {
    o.mask.first_queries = Tensor::zeros({2}, DType::i64);
    o.relative_bias = Tensor::zeros({4, 8});
  });
  EXPECT_NE(both.find("distances differ between sequences"), std::string::npos) << both;
}

}  // namespace
}  // namespace pair_masks
}  // namespace heddle::ops
