// Ops that a device has no routine for, where their reference is more than a formula.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/test_without.h"
#include "ops/attention/attention.call.h"
#include "ops/dropout/dropout.call.h"
#include "ops/embedding/embedding.call.h"
#include "ops/glu/glu.call.h"
#include "ops/mean_pool/mean_pool.call.h"
#include "ops/norm/norm.call.h"
#include "ops/rope/rope.call.h"
#include "ops/softmax/softmax.call.h"

namespace heddle::backend {
namespace {

using In = const std::vector<Tensor>&;

constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();

// Two sequences of 5 queries in 4 heads, against 6 keys in 2 heads.
std::vector<Tensor> drawn_sides() {
  return {drawn({2, 5, 4, 3}, 1), drawn({2, 6, 2, 3}, 2), drawn({2, 6, 2, 7}, 3)};
}

// Every mask at once. Sequence 1 sees two keys: its query 4 sees none of them.
ops::AttentionOptions every_mask() {
  ops::AttentionOptions o;
  o.mask.causal = true;
  o.mask.first_query = 1;
  o.mask.look_back = 3;
  o.mask.key_lengths = Tensor::from<std::int64_t>({2}, {6, 2});
  std::vector<std::uint8_t> allowed(30, 1);
  allowed[8] = allowed[13] = 0;
  o.mask.allowed = Tensor::from<std::uint8_t>({1, 1, 5, 6}, std::span<const std::uint8_t>(allowed));
  return o;
}

void expect_attention_reference(const char* name, const ops::AttentionOptions& options,
                                std::vector<Tensor> inputs = drawn_sides()) {
  expect_reference_instead<ops::AttentionCall>(
      name, [&](In in) { return ops::attention(in[0], in[1], in[2], options); }, inputs);
  inputs.push_back(drawn({4, 3}, 4));
  expect_reference_instead<ops::AttentionCall>(
      name, [&](In in) { return ops::additive_attention(in[0], in[1], in[3], in[2], options); },
      inputs);
}

TEST(Fallbacks, AttentionWithItsMasks) {
  expect_attention_reference("plain", {});
  expect_attention_reference("masks", every_mask());
  ops::AttentionOptions relu = every_mask();
  relu.normaliser = ops::Normaliser::relu;
  relu.scale = 0.7;
  expect_attention_reference("relu", relu);
  ops::AttentionOptions ring = every_mask();
  ring.first_row = 2;
  ring.softcap = 1.5;
  expect_attention_reference("ring, capped", ring);
  ops::AttentionOptions dropped = every_mask();
  dropped.dropout = 0.4;
  dropped.key = {7, 8, 9};
  expect_attention_reference("dropout", dropped);
}

TEST(Fallbacks, AttentionWithWhatIsLearned) {
  std::vector<Tensor> inputs = drawn_sides();
  inputs.push_back(drawn({4, 10}, 5));       // bias by distance
  inputs.push_back(drawn({4}, 6));           // sinks
  inputs.push_back(drawn({2, 1, 5, 6}, 7));  // additive mask
  inputs.back().mutable_data<double>()[3] = kNegativeInfinity;
  expect_reference_instead<ops::AttentionCall>(
      "attention",
      [](In in) {
        ops::AttentionOptions o = every_mask();
        o.relative_bias = in[3];
        o.sinks = in[4];
        o.additive_mask = in[5];
        return ops::attention(in[0], in[1], in[2], o);
      },
      inputs);
}

TEST(Fallbacks, AttentionHasTheSameSums) {
  const std::vector<Tensor> in = drawn_sides();
  ops::AttentionOptions with_sinks = every_mask();
  with_sinks.sinks = drawn({4}, 6);
  ops::AttentionOptions relu = every_mask();
  relu.normaliser = ops::Normaliser::relu;
  for (const ops::AttentionOptions& o : {every_mask(), with_sinks, relu}) {
    const auto sums = [&] {
      return ops::attention_with_sums(in[0], in[1], in[2], o).row_sums.to_vector<double>();
    };
    const std::vector<double> fused = sums();
    const Without<ops::AttentionCall> without;
    const std::vector<double> plain = sums();
    ASSERT_EQ(plain.size(), fused.size());
    for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(plain[i], fused[i], 1e-10) << i;
  }
}

// With bf16, parameters and masks are f32, and so are scores.
TEST(Fallbacks, AttentionInBf16IsComputedInF32) {
  std::vector<Tensor> in = drawn_sides();
  for (Tensor& x : in) x = ops::cast(x, DType::bf16);
  ops::AttentionOptions o = every_mask();
  o.sinks = ops::cast(drawn({4}, 6), DType::f32);
  const Without<ops::AttentionCall> without;
  const Tensor y = ops::attention(in[0], in[1], in[2], o);
  EXPECT_EQ(y.dtype(), DType::bf16);
  for (Tensor& x : in) x = ops::cast(x, DType::f64);
  o.sinks = ops::cast(o.sinks, DType::f64);
  const std::vector<double> exact = ops::attention(in[0], in[1], in[2], o).to_vector<double>();
  const std::vector<double> got = ops::cast(y, DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], exact[i], 1e-5 + std::abs(exact[i]) / 256) << i;
}

TEST(Fallbacks, Rope) {
  const ops::RopeTables tables = ops::rope_tables(9, 4, 100, DType::f64);
  for (const ops::Pairing pairing : {ops::Pairing::half, ops::Pairing::interleaved})
    for (const bool given : {false, true}) {
      ops::RopeOptions o{pairing, given ? 0 : 2, {}};
      if (given) o.positions = Tensor::from<std::int64_t>({2, 3}, {8, 0, 4, 1, 1, 7});
      expect_reference_instead<ops::RopeCall>(
          "rope", [&](In in) { return ops::rope(in[0], tables.cos, tables.sin, o); },
          {drawn({2, 3, 2, 6}, 1)});
    }
}

TEST(Fallbacks, DropoutDropsTheSame) {
  for (const double p : {0.3, 1.0})
    expect_reference_instead<ops::DropoutCall>(
        "dropout", [p](In in) { return ops::dropout(in[0], p, {3, 4, 5}); }, {drawn({7, 5}, 1)});
}

TEST(Fallbacks, Embedding) {
  const Tensor ids = Tensor::from<std::int32_t>({2, 3}, {4, 0, 4, 2, 4, 1});
  expect_reference_instead<ops::EmbeddingCall>(
      "embedding", [&](In in) { return ops::embedding(in[0], ids, DType::f64); },
      {drawn({5, 3}, 1)});
}

// Beside bf16 parameters are f32, and sums are made in f32: a result is off by one rounding.
template <class Call>
void expect_exact_in_bf16(const char* name, const Op& op, const Tensor& drawn_input) {
  SCOPED_TRACE(name);
  const Tensor x = ops::cast(drawn_input, DType::bf16);
  const std::vector<double> exact =
      ops::cast(op({ops::cast(x, DType::f32)}), DType::f64).to_vector<double>();
  const Without<Call> without;
  const Tensor y = op({x});
  EXPECT_EQ(y.dtype(), DType::bf16);
  const std::vector<double> got = ops::cast(y, DType::f64).to_vector<double>();
  ASSERT_EQ(got.size(), exact.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], exact[i], 1e-6 + std::abs(exact[i]) / 256) << i;
}

TEST(Fallbacks, Bf16IsRoundedOnce) {
  const Tensor x = drawn({2, 3, 2, 8}, 1), rows = drawn({2, 300, 4}, 2);
  const Tensor gain = ops::cast(drawn({8}, 3), DType::f32);
  const ops::RopeTables tables = ops::rope_tables(9, 8, 100);
  const Tensor mask = Tensor::full({2, 300}, 1, DType::u8);
  expect_exact_in_bf16<ops::NormCall>(
      "rms_norm", [&](In in) { return ops::rms_norm(in[0], gain, 1e-2); }, x);
  expect_exact_in_bf16<ops::NormCall>(
      "layer_norm", [&](In in) { return ops::layer_norm(in[0], gain, gain, 1e-2); }, x);
  expect_exact_in_bf16<ops::SoftmaxCall>("softmax", [](In in) { return ops::softmax(in[0]); }, x);
  expect_exact_in_bf16<ops::GluCall>("glu", [](In in) { return ops::glu(in[0]); }, x);
  expect_exact_in_bf16<ops::RopeCall>(
      "rope", [&](In in) { return ops::rope(in[0], tables.cos, tables.sin); }, x);
  expect_exact_in_bf16<ops::DropoutCall>(
      "dropout", [](In in) { return ops::dropout(in[0], 0.3, {1, 2, 3}); }, x);
  expect_exact_in_bf16<ops::MeanPoolCall>(
      "mean_pool", [&](In in) { return ops::mean_pool(in[0], mask); }, rows);
}

// A row of nothing but -inf gives zeros, and zero gradients.
TEST(Fallbacks, SoftmaxOfRowsThatAreHidden) {
  Tensor x = drawn({2, 3}, 1);
  for (int i = 0; i < 3; ++i) x.mutable_data<double>()[i] = kNegativeInfinity;
  x.mutable_data<double>()[4] = kNegativeInfinity;
  expect_reference_instead<ops::SoftmaxCall>("softmax", [](In in) { return ops::softmax(in[0]); },
                                             {x});
}

}  // namespace
}  // namespace heddle::backend
