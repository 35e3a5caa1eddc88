// The contents of keys and values that no query sees must not matter, whatever they are: a buffer
// for future keys has not been written yet.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "ops/attention/test_devices.h"
#include "ops/attention/test_emulated.h"

namespace heddle::ops {
namespace hidden_keys {
namespace {

struct Given {
  std::int64_t queries, keys, width;
  DType dtype;
  bool additive = false, relu = false;
  Device device = Device::cpu;
};

// y and all gradients, with the keys after the lengths filled with a number.
std::vector<Tensor> outcome(const Given& g, double filling) {
  const std::int64_t heads = 4, groups = 2, seen = g.keys - g.keys / 3;
  const auto random = [&](std::int64_t tokens, std::int64_t count, std::uint32_t stream) {
    return cast(random_normal({2, tokens, count, g.width}, 0, 1, {9, 0, stream}), g.dtype);
  };
  const auto filled = [&](std::uint32_t stream) {
    const Tensor rest = Tensor::full({2, g.keys - seen, groups, g.width}, filling, g.dtype);
    return clone(concat(std::array{random(seen, groups, stream), rest}, 1));
  };
  const Tensor w = cast(random_normal({heads, g.width}, 0, 1, {9, 0, 4}),
                        g.dtype == DType::f64 ? DType::f64 : DType::f32);
  std::vector<Tensor> x = {random(g.queries, heads, 1), filled(2), filled(3), clone(w)};
  for (Tensor& t : x) {
    t = t.to(g.device);
    t.set_requires_grad(true);
  }
  AttentionOptions o;
  o.mask.key_lengths = Tensor::from<std::int64_t>({2}, {seen, seen / 2});
  o.mask.causal = true;
  o.mask.first_query = g.keys - g.queries;
  if (g.relu) o.normaliser = Normaliser::relu;
  Tape tape;
  const Tensor y =
      g.additive ? additive_attention(x[0], x[1], x[3], x[2], o) : attention(x[0], x[1], x[2], o);
  const Tensor dy = random(g.queries, heads, 5).to(g.device);
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  std::vector<Tensor> out = {y.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
  if (g.additive) out.push_back(x[3].grad());
  for (Tensor& t : out) t = t.to(Device::cpu);
  return out;
}

// Sequence 1 sees fewer keys than sequence 0: only what both hide is filled.
void expect_the_same(const Given& g) {
  const std::vector<Tensor> wanted = outcome(g, 0);
  for (const double filling : {double{NAN}, HUGE_VAL, -1e30}) {
    const std::vector<Tensor> got = outcome(g, filling);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(std::memcmp(got[i].raw(), wanted[i].raw(), wanted[i].bytes()), 0)
          << "tensor " << i << ", " << g.queries << " queries, " << g.keys << " keys, width "
          << g.width << ", " << to_string(g.dtype) << ", filled with " << filling;
  }
}

void expect_the_same_on(Device device, DType dtype, bool relu) {
  expect_the_same({1, 400, 12, dtype, false, relu, device});  // generation
  expect_the_same({5, 9, 12, dtype, false, relu, device});
  expect_the_same({40, 50, 12, dtype, false, relu, device});
  expect_the_same({300, 300, 5, dtype, false, relu, device});
  expect_the_same({1, 400, 32, dtype, false, relu, device});  // and on tensor cores
  expect_the_same({90, 150, 64, dtype, false, relu, device});
  expect_the_same({7, 40, 3, dtype, true, relu, device});
  expect_the_same({40, 40, 3, dtype, true, relu, device});
}

TEST(HiddenKeys, MayBeAnything) {
  for (const Device device : attention_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
      for (const bool relu : {false, true}) expect_the_same_on(device, dtype, relu);
}

TEST(HiddenKeys, MayBeAnythingOnTiles) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs avx512_bf16";
  const OnEmulatedTiles tiles;
  for (const bool relu : {false, true})
    for (const std::int64_t tokens : {50, 200, 600})  // whole heads, and longer ones
      expect_the_same({tokens, tokens, 32, DType::bf16, false, relu});
}

}  // namespace
}  // namespace hidden_keys
}  // namespace heddle::ops
