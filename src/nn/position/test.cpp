#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "nn/position/alibi.h"
#include "nn/position/learned.h"
#include "nn/position/rope.h"
#include "nn/position/sinusoidal.h"
#include "nn/position/t5.h"

namespace heddle::nn {
namespace {

using Doubles = std::vector<double>;

Doubles doubles(const Tensor& t) { return ops::cast(t.detach(), DType::f64).to_vector<double>(); }

void expect_near(const Doubles& got, const Doubles& wanted, double relative) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i])) << "at " << i;
}

std::string refusal(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Sinusoidal, IsThePapersTable) {
  // Width 4: periods 2π and 2π · 100.
  expect_near(doubles(sinusoidal(0, 1, 4, DType::f64)), {0, 1, 0, 1}, 0);
  expect_near(doubles(sinusoidal(3, 2, 4, DType::f64)),
              {0.1411200080598672, -0.9899924966004454, 0.0299955002024957, 0.9995500337489875,
               -0.7568024953079282, -0.6536436208636119, 0.0399893341866342, 0.9992001066609779},
              1e-12);
  EXPECT_EQ(sinusoidal(0, 7, 6, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(sinusoidal(0, 7, 6, DType::f32, Device::meta).shape(), (Shape{7, 6}));
  EXPECT_NE(refusal([] { sinusoidal(0, 3, 5); }).find("key width"), std::string::npos);
}

TEST(Learned, TakesRowsAndSendsGradientsThere) {
  Tensor table = Tensor::from<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  table.set_requires_grad(true);
  Tape tape;
  const Tensor y = learned(table, 1, 2, DType::f32);
  EXPECT_EQ(doubles(y), (Doubles{3, 4, 5, 6}));
  tape.backward(ops::sum_all(ops::mul(y, y)));
  EXPECT_EQ(doubles(table.grad()), (Doubles{0, 0, 6, 8, 10, 12, 0, 0}));
  EXPECT_NE(refusal([&] { learned(table, 3, 2, DType::f32); }).find("positions 0 to 4"),
            std::string::npos);
}

// The numbers are those of Hugging Face's T5.
TEST(T5, BucketsBothWays) {
  const std::int64_t distances[] = {-200, -128, -127, -91, -90, -64, -63, -32, -31,
                                    -16,  -15,  -12,  -11, -8,  -7,  -1,  0,   1,
                                    7,    8,    11,   12,  64,  127, 128};
  const std::int64_t wanted[] = {15, 15, 15, 15, 14, 14, 13, 12, 11, 10, 9,  9, 8,
                                 8,  7,  1,  0,  17, 23, 24, 24, 25, 30, 31, 31};
  for (std::size_t i = 0; i < std::size(distances); ++i)
    EXPECT_EQ(t5_bucket(distances[i], {32, 128, true}), wanted[i]) << distances[i];
}

TEST(T5, BucketsOfADecoder) {
  const std::int64_t distances[] = {-200, -128, -113, -112, -64, -32, -31, -16, -15,
                                    -12,  -11,  -8,   -7,   -1,  0,   1,   7,   128};
  const std::int64_t wanted[] = {31, 31, 31, 30, 26, 21, 21, 16, 15, 12, 11, 8, 7, 1, 0, 0, 0, 0};
  for (std::size_t i = 0; i < std::size(distances); ++i)
    EXPECT_EQ(t5_bucket(distances[i], {32, 128, false}), wanted[i]) << distances[i];
}

TEST(T5, BiasIsTheTableByDistance) {
  const T5Options options{8, 20, true};
  const std::int64_t heads = 3, queries = 4, keys = 9, first = 5;
  Tensor table = ops::random_normal({8, heads}, 0, 1, {7, 0, 0}, DType::f64);
  table.set_requires_grad(true);
  Tape tape;
  const Tensor bias = t5_bias(table, options, {queries, keys, first});
  ASSERT_EQ(bias.shape(), (Shape{heads, queries + keys - 1}));
  const Doubles b = doubles(bias), t = doubles(table);
  Doubles counts(8 * 3, 0.0);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t bucket = t5_bucket(j - (first + i), options);
        EXPECT_EQ(b[static_cast<std::size_t>(h * (queries + keys - 1) + j - i + queries - 1)],
                  t[static_cast<std::size_t>(bucket * heads + h)]);
      }
  tape.backward(ops::sum_all(bias));
  for (std::int64_t n = -queries - first + 1; n < keys - first; ++n)
    for (std::int64_t h = 0; h < heads; ++h)
      counts[static_cast<std::size_t>(t5_bucket(n, options) * heads + h)] += 1;
  EXPECT_EQ(doubles(table.grad()), counts);
}

TEST(T5, RefusesWhatMakesNoSense) {
  EXPECT_NE(refusal([] { validate(T5Options{7, 20, true}); }).find("key t5_buckets"),
            std::string::npos);
  EXPECT_NE(refusal([] { validate(T5Options{8, 4, false}); }).find("key t5_max_distance"),
            std::string::npos);
}

TEST(Alibi, SlopesOfThePaper) {
  expect_near(alibi_slopes(8), {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625},
              1e-15);
  expect_near(alibi_slopes(1), {0.00390625}, 1e-15);
  // 12 heads: those of 8, then every second one of 16, which begin with 2^-0.5.
  expect_near(alibi_slopes(12),
              {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625,
               0.7071067811865476, 0.35355339059327384, 0.17677669529663692, 0.08838834764831849},
              1e-14);
  expect_near(alibi_slopes(3), {0.0625, 0.00390625, 0.25}, 1e-15);
}

TEST(Alibi, BiasFallsWithTheDistance) {
  const Doubles b = doubles(alibi_bias(2, {2, 3, 4}, DType::f64));
  // Queries at 4 and 5, keys at 0 to 2: distances -5 to -2. Slopes 1/16 and 1/256.
  expect_near(
      b,
      {-5.0 / 16, -4.0 / 16, -3.0 / 16, -2.0 / 16, -5.0 / 256, -4.0 / 256, -3.0 / 256, -2.0 / 256},
      1e-15);
  EXPECT_EQ(doubles(alibi_bias(1, {1, 2, 0}, DType::f32)), (Doubles{0, -0.00390625}));
}

Doubles picked(const RopeOptions& o, std::int64_t width, std::initializer_list<std::size_t> which) {
  const Doubles all = rope_frequencies(o, width);
  EXPECT_EQ(all.size(), static_cast<std::size_t>((o.rotated == 0 ? width : o.rotated) / 2));
  Doubles out;
  for (const std::size_t i : which) out.push_back(all[i]);
  return out;
}

TEST(Rope, PlainLinearAndNtkFrequencies) {
  expect_near(rope_frequencies({}, 8), {1, 0.1, 0.01, 0.001}, 1e-12);
  expect_near(rope_frequencies({.base = 10000, .rotated = 4}, 8), {1, 0.01}, 1e-12);
  expect_near(rope_frequencies({.scaling = LinearScaling{4}}, 8), {0.25, 0.025, 0.0025, 0.00025},
              1e-12);
  // The first pair turns as before, the last one 8 times slower.
  const Doubles ntk = rope_frequencies({.scaling = NtkScaling{8}}, 8);
  expect_near(ntk, {1, 0.05, 0.0025, 0.000125}, 1e-12);
}

// The numbers are those of Hugging Face's modeling_rope_utils, in float32.
TEST(Rope, YarnFrequenciesAndAttentionFactor) {
  RopeOptions o{.scaling = YarnScaling{.factor = 4, .original_positions = 2048}};
  expect_near(rope_frequencies(o, 16),
              {1, 0.316227764, 0.100000001, 0.025693506, 0.00624999963, 0.00138349656,
               0.000250000012, 7.90569466e-05},
              1e-6);
  EXPECT_NEAR(rope_attention_factor(o), 1.138629436111989, 1e-14);
  o = {.base = 1e6, .scaling = YarnScaling{.factor = 4, .original_positions = 32768}};
  expect_near(picked(o, 128, {0, 20, 23, 30, 35, 40, 63}),
              {1, 0.0133352149, 0.00697830599, 0.00106436096, 0.000246258394, 4.44569851e-05,
               3.10234441e-07},
              1e-6);
  o = {.scaling = YarnScaling{
           .factor = 40, .original_positions = 4096, .mscale = 1, .mscale_all_dim = 0.707}};
  expect_near(picked(o, 64, {0, 10, 15, 20, 31}),
              {1, 0.0562341288, 0.0083345091, 0.000790569407, 3.33380353e-06}, 1e-6);
  EXPECT_NEAR(rope_attention_factor(o), 1.0857263992561355, 1e-14);
}

TEST(Rope, Llama3Frequencies) {
  const RopeOptions o{.base = 500000, .scaling = Llama3Scaling{8, 1, 4, 8192}};
  expect_near(picked(o, 128, {0, 10, 28, 29, 30, 32, 34, 36, 63}),
              {1, 0.128687382, 0.00321144611, 0.00216657063, 0.00137189368, 0.000524846022,
               0.000178507791, 7.78465546e-05, 3.06892588e-07},
              1e-6);
  EXPECT_EQ(rope_attention_factor(o), 1);
}

TEST(Rope, TablesHoldTheAttentionFactor) {
  const RopeOptions o{.scaling = YarnScaling{.factor = 4, .original_positions = 2048}};
  const ops::RopeTables t = rope_tables(o, 16, 5, DType::f64);
  const Doubles cos = doubles(t.cos), sin = doubles(t.sin);
  const double factor = 0.1 * std::log(4.0) + 1;
  EXPECT_NEAR(cos[0], factor, 1e-14);
  EXPECT_NEAR(cos[3 * 8 + 1], factor * std::cos(3 / std::sqrt(10.0)), 1e-14);
  EXPECT_NEAR(sin[3 * 8 + 1], factor * std::sin(3 / std::sqrt(10.0)), 1e-14);
}

TEST(Rope, RotaryTurnsEitherPairingFromAnyPosition) {
  const Tensor x = ops::random_normal({1, 2, 1, 6}, 0, 1, {3, 0, 0}, DType::f64);
  const Doubles v = doubles(x);
  for (const auto pairing : {ops::Pairing::half, ops::Pairing::interleaved}) {
    const Rotary rotary({.rotated = 4, .pairing = pairing}, 6);
    const std::size_t step = pairing == ops::Pairing::half ? 2 : 1;
    for (const std::int64_t first : {0, 5, 3}) {
      const Doubles y = doubles(rotary.rotate(x, first));
      for (std::size_t token = 0; token < 2; ++token)
        for (std::size_t pair = 0; pair < 2; ++pair) {
          const std::size_t a = token * 6 + (step == 2 ? pair : 2 * pair);
          const double angle = static_cast<double>(first + static_cast<std::int64_t>(token)) *
                               (pair == 0 ? 1.0 : 0.01);
          EXPECT_NEAR(y[a], v[a] * std::cos(angle) - v[a + step] * std::sin(angle), 1e-12);
          EXPECT_NEAR(y[a + step], v[a + step] * std::cos(angle) + v[a] * std::sin(angle), 1e-12);
        }
      for (const std::size_t kept : {4, 5, 10, 11}) EXPECT_EQ(y[kept], v[kept]);
    }
  }
}

TEST(Rope, RefusesWhatMakesNoSense) {
  const auto says = [](const RopeOptions& o, std::int64_t width, const char* text) {
    const std::string message = refusal([&] { validate(o, width); });
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says({}, 5, "key rope_width");
  says({.rotated = 3}, 8, "key rope_width");
  says({.rotated = 10}, 8, "head_width = 8");
  says({.base = 1}, 8, "key rope_base");
  says({.scaling = LinearScaling{0.5}}, 8, "key rope_scaling.factor");
  says({.scaling = NtkScaling{2}}, 2, "more than 2");
  says({.scaling = YarnScaling{.factor = 2}}, 8, "original_positions");
  says({.scaling = Llama3Scaling{8, 4, 4, 8192}}, 8, "high_frequency");
}

}  // namespace
}  // namespace heddle::nn
