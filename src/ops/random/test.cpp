#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "harness/harness.h"
#include "harness/values.h"
#include "ops/random/random.h"
#include "ops/random/random.kernels.h"

namespace heddle::harness::random_cases {
namespace {

constexpr RandomKey kKey{0x0123456789abcdefu, 7, 42};

std::uint32_t word(const RandomKey& key, std::uint64_t i) { return philox(key, i / 4)[i % 4]; }

double uniform_at(const RandomKey& key, std::uint64_t i) { return (word(key, i) >> 8) * 0x1p-24; }

double normal_at(const RandomKey& key, std::uint64_t i) {
  const double u = ((word(key, i & ~std::uint64_t{1}) >> 8) + 1) * 0x1p-24;
  const double t = 2 * std::numbers::pi * ((word(key, i | 1) >> 8) * 0x1p-24);
  return std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(t) : std::sin(t));
}

// The input only says which type and device are meant.
void add(const char* name, const Shape& shape, bool normal) {
  Case c;
  c.op = "random";
  c.name = std::string(name) + to_string(shape);
  c.inputs = {act({1})};
  c.run = [=](std::span<const Tensor> in) {
    const auto draw = normal ? ops::random_normal : ops::random_uniform;
    return Tensors{draw(shape, -0.75, 1.5, kKey, in[0].dtype(), in[0].device())};
  };
  c.reference = [=](std::span<const Tensor>) {
    std::vector<double> v;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(elements_of(shape)); ++i)
      v.push_back(normal ? -0.75 + 1.5 * normal_at(kKey, i) : -0.75 + 2.25 * uniform_at(kKey, i));
    return Tensors{make_tensor(shape, DType::f64, v)};
  };
  c.gradient = false;
  c.f16 = false;  // it has no input to be widened
  add_case(c);
}

const bool registered = [] {
  for (const Shape& shape :
       {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5}, Shape{2, 3, 41}, Shape{3, 16411}}) {
    add("uniform", shape, false);
    add("normal", shape, true);
  }
  using K = cpu::RandomKernels;
  add_kernel_mutant<K>("random", "the op's number is left out of the key", [](K& k) {
    k.uniform = [](const cpu::RandomArgs& a) noexcept {
      cpu::RandomArgs b = a;
      b.key.op = 0;
      sound<K>().uniform(b);
    };
  });
  add_kernel_mutant<K>("random", "the upper half of the seed is left out", [](K& k) {
    k.normal = [](const cpu::RandomArgs& a) noexcept {
      cpu::RandomArgs b = a;
      b.key.seed &= 0xffffffffu;
      sound<K>().normal(b);
    };
  });
  add_kernel_mutant<K>("random", "the last element is left out", [](K& k) {
    k.normal = [](const cpu::RandomArgs& a) noexcept {
      cpu::RandomArgs b = a;
      b.count -= b.count > 0 ? 1 : 0;
      sound<K>().normal(b);
    };
  });
  return true;
}();

// The vectors published with the generator (Random123, kat_vectors): counter words 0 and 1 are the
// block's index, 2 and 3 step and op; the key is the seed, lower half first.
TEST(random_values, philox_known_answers) {
  EXPECT_EQ(philox({0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(philox({kOnes, 0xffffffffu, 0xffffffffu}, kOnes),
            (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox({0x299f31d0a4093822u, 0x13198a2eu, 0x03707344u}, 0x85a308d3243f6a88u),
            (PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::vector<double>& v) {
  Moments m;
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v)
    m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  return m;
}

// Kolmogorov and Smirnov: √n times the largest distance from the distribution function; above 1.95
// once in a thousand true samples. The sample is fixed, so the test cannot flicker.
double kolmogorov(std::vector<double> v, double (*cdf)(double)) {
  std::sort(v.begin(), v.end());
  const auto n = static_cast<double>(v.size());
  double largest = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double f = cdf(v[i]);
    largest =
        std::max({largest, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return largest * std::sqrt(n);
}

TEST(random_values, uniform_is_uniform) {
  const auto v = to_doubles(ops::random_uniform({400, 500}, 0, 1, {5, 0, 1}));
  const Moments m = moments(v);
  EXPECT_NEAR(m.mean, 0.5, 4 * std::sqrt(1.0 / 12 / 2e5));
  EXPECT_NEAR(m.variance, 1.0 / 12, 1e-3);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
  EXPECT_LT(*std::max_element(v.begin(), v.end()), 1);
  EXPECT_LT(kolmogorov(v, [](double x) { return x; }), 1.95);
}

TEST(random_values, normal_is_normal) {
  const auto v = to_doubles(ops::random_normal({400, 500}, 0, 1, {6, 0, 1}));
  const Moments m = moments(v);
  EXPECT_NEAR(m.mean, 0, 4 / std::sqrt(2e5));
  EXPECT_NEAR(m.variance, 1, 4 * std::sqrt(2 / 2e5));
  EXPECT_LT(kolmogorov(v, [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }),
            1.95);
  // Neighbours share a radius or an angle: they must not be correlated.
  double product = 0;
  for (std::size_t i = 0; i + 1 < v.size(); ++i) product += v[i] * v[i + 1];
  EXPECT_NEAR(product / 2e5, 0, 4 / std::sqrt(2e5));
}

TEST(random_values, streams_differ) {
  const auto a = to_doubles(ops::random_uniform({8}, 0, 1, {1, 0, 0}));
  EXPECT_EQ(a, to_doubles(ops::random_uniform({8}, 0, 1, {1, 0, 0})));
  for (const RandomKey& key : {RandomKey{2, 0, 0}, RandomKey{1, 1, 0}, RandomKey{1, 0, 1}})
    EXPECT_NE(a, to_doubles(ops::random_uniform({8}, 0, 1, key)));
}

TEST(random_values, refuses) {
  EXPECT_THROW(ops::random_uniform({2}, 1, 0, kKey), Error);
  EXPECT_THROW(ops::random_uniform({2}, 0, std::numeric_limits<double>::infinity(), kKey), Error);
  EXPECT_THROW(ops::random_uniform({2}, 0, 1, kKey, DType::i32), Error);
  EXPECT_THROW(ops::random_uniform({-2}, 0, 1, kKey), Error);
  EXPECT_THROW(ops::random_normal({2}, 0, -1, kKey), Error);
  EXPECT_THROW(ops::random_normal({2}, std::numeric_limits<double>::quiet_NaN(), 1, kKey), Error);
  EXPECT_THROW(ops::random_normal({2}, 0, 1, kKey, DType::f16), Error);
}

}  // namespace
}  // namespace heddle::harness::random_cases
