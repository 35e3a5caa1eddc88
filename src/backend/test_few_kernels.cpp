// Ops on a device that has eight plain kernels and memory that the host cannot read: results and
// gradients are those of the CPU.
#include <gtest/gtest.h>

#include "backend/test_without.h"
#include "mock/mock.h"
#include "nn/ffn/slots.h"

namespace heddle::backend {
namespace {

using In = const std::vector<Tensor>&;

// The op with its other arguments on that device.
using OpOn = std::function<Tensor(In in, Device device)>;

void expect_the_same_there(const char* name, const OpOn& op, const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(name);
  const Device there = mock::device();
  const auto on = [&](Device d) { return computed([&](In in) { return op(in, d); }, inputs, d); };
  const std::vector<double> here = on(Device::cpu), got = on(there);
  ASSERT_EQ(got.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(got[i], here[i], 1e-9) << i;
}

ops::AttentionOptions masked_options(Device device) {
  ops::AttentionOptions o;
  o.mask.causal = true;
  o.mask.first_query = 1;
  o.mask.look_back = 3;
  o.mask.key_lengths = Tensor::from<std::int64_t>({2}, {6, 2});  // stays with the host
  std::vector<std::uint8_t> allowed(30, 1);
  allowed[8] = allowed[13] = 0;
  o.mask.allowed =
      Tensor::from<std::uint8_t>({1, 1, 5, 6}, std::span<const std::uint8_t>(allowed), device);
  o.dropout = 0.25;
  o.key = {7, 8, 9};
  return o;
}

TEST(FewKernels, Attention) {
  const std::vector<Tensor> sides = {drawn({2, 5, 4, 3}, 1), drawn({2, 6, 2, 3}, 2),
                                     drawn({2, 6, 2, 7}, 3), drawn({4, 10}, 4), drawn({4}, 5)};
  expect_the_same_there(
      "attention",
      [](In in, Device d) {
        ops::AttentionOptions o = masked_options(d);
        o.relative_bias = in[3];
        o.sinks = in[4];
        return ops::attention(in[0], in[1], in[2], o);
      },
      sides);
  expect_the_same_there(
      "with prepared keys",
      [](In in, Device d) {
        ops::AttentionOptions o;
        o.mask.causal = true;
        o.keys = ops::prepared_keys(o.mask, {2, 5, 6}, d);
        o.relative_bias = in[3];
        o.sinks = in[4];
        return ops::attention(in[0], in[1], in[2], o);
      },
      sides);
  expect_the_same_there("additive attention",
                        [](In in, Device d) {
                          ops::AttentionOptions o = masked_options(d);
                          o.normaliser = ops::Normaliser::relu;
                          o.first_row = 2;
                          return ops::additive_attention(in[0], in[1], in[3], in[2], o);
                        },
                        {sides[0], sides[1], sides[2], drawn({4, 3}, 6)});
}

TEST(FewKernels, Layers) {
  const Tensor x = drawn({2, 3, 4}, 1), gain = drawn({4}, 2), bias = drawn({4}, 3);
  constexpr double kEps = 1e-2;
  expect_the_same_there("rms_norm", [](In in, Device) { return ops::rms_norm(in[0], in[1], kEps); },
                        {x, gain});
  expect_the_same_there("add_layer_norm",
                        [](In in, Device) {
                          const ops::NormResidual r =
                              ops::add_layer_norm(in[0], in[1], in[2], in[3], kEps);
                          return ops::add(r.sum, r.y);
                        },
                        {x, drawn({2, 3, 4}, 4), gain, bias});
  expect_the_same_there("softmax", [](In in, Device) { return ops::softmax(in[0]); }, {x});
  expect_the_same_there("log_softmax", [](In in, Device) { return ops::log_softmax(in[0]); }, {x});
  expect_the_same_there("glu", [](In in, Device) { return ops::glu(in[0]); }, {x});
  expect_the_same_there("dropout",
                        [](In in, Device) { return ops::dropout(in[0], 0.4, {1, 2, 3}); }, {x});
  expect_the_same_there("mean_pool",
                        [](In in, Device d) {
                          return ops::mean_pool(
                              in[0], Tensor::from<std::uint8_t>({2, 3}, {1, 0, 1, 1, 1, 1}, d));
                        },
                        {x});
  expect_the_same_there("embedding",
                        [](In in, Device d) {
                          return ops::embedding(in[0],
                                                Tensor::from<std::int32_t>({2, 2}, {3, 0, 3, 1}, d),
                                                DType::f64);
                        },
                        {drawn({4, 3}, 5)});
  expect_the_same_there("rope",
                        [](In in, Device d) {
                          const ops::RopeTables t = ops::rope_tables(9, 4, 100, DType::f64, d);
                          ops::RopeOptions o;
                          o.positions = Tensor::from<std::int64_t>({2, 3}, {8, 0, 4, 1, 1, 7}, d);
                          return ops::rope(in[0], t.cos, t.sin, o);
                        },
                        {drawn({2, 3, 2, 5}, 6)});
}

TEST(FewKernels, RoutingOfExperts) {
  const Tensor x = ops::random_uniform({50, 7}, 0, 1, {1, 2, 3});
  const auto outcome = [&](Device d) {
    const Tensor chosen = ops::top_k(x.to(d), 2);
    EXPECT_EQ(chosen.device(), d);
    const nn::Slots s = nn::make_slots(chosen, {}, {7, 12});
    std::vector<std::int64_t> all = chosen.to_vector<std::int64_t>();
    for (const Tensor& t : {s.tokens, s.choices, s.load}) {
      const auto v = t.to_vector<std::int64_t>();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  EXPECT_EQ(outcome(mock::device()), outcome(Device::cpu));
}

}  // namespace
}  // namespace heddle::backend
