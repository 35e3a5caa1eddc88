// Checks outside the case table: when a weight is packed anew, what is booked for it, and which
// calls are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "heddle/cost.h"
#include "heddle/tape.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/matmul/matmul.h"
#include "ops/support/cpu/packed_weight.h"
#include "tensor/storage.h"

namespace heddle {
namespace {

Tensor ramp(const Shape& shape, DType dtype = DType::f32) {
  Tensor t = Tensor::empty(shape, dtype);
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const auto value = static_cast<float>((i * 7) % 11 - 5);  // exact in bf16
    if (dtype == DType::bf16)
      t.mutable_data<bf16>()[i] = bf16::from_float(value);
    else
      t.mutable_data<float>()[i] = value;
  }
  return t;
}

std::int64_t workspace(Device device) {
  return memory_use(device).live_by_purpose[static_cast<std::size_t>(Purpose::workspace)];
}

TEST(PackedWeight, IsKeptUntilTheWeightChanges) {
  const Tensor x = ramp({3, 8});
  Tensor w = ramp({5, 8});
  const Tensor wt = views::transpose(w, 0, 1);
  const void* first = cpu::packed_weight(wt, DType::f32).raw();
  const std::uint64_t version = cpu::packed_weight(wt, DType::f32).version();
  EXPECT_EQ(cpu::packed_weight(wt, DType::f32).raw(), first);
  EXPECT_EQ(cpu::packed_weight(wt, DType::f32).version(), version);  // not packed again

  const std::vector<float> before = ops::linear(x, w).to_vector<float>();
  for (std::int64_t i = 0; i < w.elements(); ++i) w.mutable_data<float>()[i] *= 2;
  const std::vector<float> after = ops::linear(x, w).to_vector<float>();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], 2 * before[i]);
  EXPECT_EQ(cpu::packed_weight(wt, DType::f32).raw(), first);  // into the same memory
}

TEST(PackedWeight, ManyAreRefreshedAtOnce) {
  const Tensor x = ramp({3, 40});
  std::vector<Tensor> weights = {ramp({70, 40}), ramp({5, 40}), ramp({33, 40})};
  std::vector<Tensor> packed;
  for (const Tensor& w : weights)
    for (const Tensor& view : {views::transpose(w, 0, 1), views::slice(w, 0, 2, w.size(0))})
      packed.push_back(cpu::packed_weight(view, DType::f32));
  const auto change = [&] {
    for (Tensor& w : weights)
      for (std::int64_t i = 0; i < w.elements(); ++i) w.mutable_data<float>()[i] += 1;
  };
  const auto versions = [&] {
    std::vector<std::uint64_t> v;
    for (const Tensor& p : packed) v.push_back(p.version());
    return v;
  };
  const auto change_and_pack = [&] {
    cpu::PackedRefresh refresh(weights);
    change();
    for (std::size_t i = 0; i < weights.size(); ++i) refresh.pack(i);
  };
  const auto stale = versions();
  change_and_pack();
  const auto fresh = versions();
  for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_GT(fresh[i], stale[i]);
  change_and_pack();  // weights not used since then are left alone
  EXPECT_EQ(versions(), fresh);
  for (const Tensor& w : weights) ops::linear(x, w);
  change_and_pack();
  const auto last = versions();
  for (const Tensor& w : weights)
    EXPECT_EQ(ops::linear(x, w).to_vector<float>(),
              ops::linear(x, ops::clone(w)).to_vector<float>());
  EXPECT_EQ(versions(), last);  // not packed again
}

TEST(PackedWeight, ViewsAndTypesHaveTheirOwn) {
  const Tensor w = ramp({6, 8});
  const Tensor top = views::slice(w, 0, 0, 3);
  const Tensor bottom = views::slice(w, 0, 3, 6);
  const void* all[] = {cpu::packed_weight(top, DType::f32).raw(),
                       cpu::packed_weight(bottom, DType::f32).raw(),
                       cpu::packed_weight(top, DType::bf16).raw(),
                       cpu::packed_weight(views::transpose(top, 0, 1), DType::f32).raw()};
  for (const void* a : all) EXPECT_EQ(std::count(std::begin(all), std::end(all), a), 1);
  EXPECT_EQ(cpu::packed_weight(top, DType::f32).raw(), all[0]);
}

TEST(PackedWeight, IsBookedAsWorkspaceAndGoesWithTheWeight) {
  for (const Device device : {Device::cpu, Device::meta}) {
    const std::int64_t before = workspace(device);
    {
      const Tensor w = Tensor::zeros({40, 30}, DType::f32, device);
      const Tensor packed = cpu::packed_weight(w, DType::bf16);
      EXPECT_EQ(workspace(device) - before, static_cast<std::int64_t>(packed.bytes()));
    }
    EXPECT_EQ(workspace(device), before);
  }
}

TEST(Linear, ManyAreTheSameBitsAsOneByOne) {
  const Tensor x = ramp({200, 40}, DType::bf16);
  const std::vector<ops::LinearWeights> weights = {
      {ramp({70, 40}), ramp({70})}, {ramp({5, 40}), {}}, {ramp({64, 40}, DType::bf16), ramp({64})}};
  const std::vector<Tensor> all = ops::linear_many(x, weights);
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_EQ(ops::cast(all[i], DType::f32).to_vector<float>(),
              ops::cast(ops::linear(x, weights[i].weight, weights[i].bias), DType::f32)
                  .to_vector<float>());
  EXPECT_TRUE(ops::linear_many(x, {}).empty());
  const std::vector<ops::LinearWeights> wrong = {weights[0], {ramp({5, 41}), {}}};
  EXPECT_THROW(ops::linear_many(x, wrong), Error);
}

TEST(Linear, FrozenWeightInBf16) {
  const Tensor w32 = ramp({5, 8});
  const Tensor w16 = ramp({5, 8}, DType::bf16);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = ramp({3, 8}, dtype);
    const Tensor a = ops::linear(x, w32);
    const Tensor b = ops::linear(x, w16);
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
  }
}

TEST(Linear, GradientOfABf16WeightIsBf16) {
  Tensor w = ramp({5, 8}, DType::bf16);
  w.set_requires_grad(true);
  Tape tape;
  const Tensor y = ops::linear(ramp({3, 8}), w);
  const Tensor ones = Tensor::full(y.shape(), 1);
  tape.backward(std::span(&y, 1), std::span(&ones, 1));
  EXPECT_EQ(w.grad().dtype(), DType::bf16);
}

// x and W once, y once: 4 · (6 + 12 + 8) bytes; what is packed may have more.
TEST(Linear, BytesAreThoseOfAllOperands) {
  const Tensor x = ramp({2, 3}), w = ramp({4, 3}), y = ramp({2, 4});
  const auto bytes = [&](const ops::LinearOptions& options) {
    const CostMeter meter;
    ops::linear(x, w, {}, options);
    return meter.cost().bytes;
  };
  ops::linear(x, w);  // packed once
  const double plain = bytes({}), added = bytes({.residual = y});
  EXPECT_GE(plain, 4 * (6 + 12 + 8));
  EXPECT_EQ(added - plain, 4 * 8) << "the residual is read";
}

// y = W2 relu(W1 x + b1): db1 = W2ᵀ dy where the sum is positive, whoever else wants a gradient.
TEST(LinearPair, TheFirstBiasAloneHasItsGradient) {
  const Tensor x = Tensor::from<float>({1, 2}, {1.0f, 2.0f});
  const Tensor w1 = Tensor::from<float>({2, 2}, {1.0f, 1.0f, -1.0f, -1.0f});
  const Tensor w2 = Tensor::from<float>({1, 2}, {3.0f, 5.0f});
  Tensor bias = Tensor::from<float>({2}, {0.5f, 0.25f});
  bias.set_requires_grad(true);
  Tape tape;
  const Tensor y = ops::linear_pair(x, {w1, bias}, ops::Activation::relu, {w2, {}});
  const Tensor dy = Tensor::from<float>({1, 1}, {2.0f});
  tape.backward(std::span(&y, 1), std::span(&dy, 1));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{10.5f}));
  EXPECT_EQ(bias.grad().to_vector<float>(), (std::vector<float>{6, 0}));
}

TEST(Linear, NothingIsSavedWithoutATape) {
  const Tensor x = ramp({64, 8});
  const Tensor w = ramp({64, 8});
  ops::LinearOptions options;
  options.activation = ops::Activation::gelu;
  (void)cpu::packed_weight(views::transpose(w, 0, 1), DType::f32);
  const std::int64_t before = memory_use(Device::cpu).live;
  reset_peak_memory(Device::cpu);
  const Tensor y = ops::linear(x, w, {}, options);
  EXPECT_EQ(memory_use(Device::cpu).peak - before, static_cast<std::int64_t>(y.bytes()));
}

template <class F>
ErrorCode refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "was not refused";
  return ErrorCode::io;
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const Tensor x = ramp({3, 8});
  const Tensor w = ramp({5, 8});
  using enum ErrorCode;
  EXPECT_EQ(refusal([&] { ops::linear(Tensor(), w); }), invalid_argument);
  EXPECT_EQ(refusal([&] { ops::linear(x, Tensor()); }), invalid_argument);
  EXPECT_EQ(refusal([&] { ops::linear(x, ramp({5, 7})); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(x, ramp({8})); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(x, Tensor::zeros({5, 8}, DType::f64)); }), dtype_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(Tensor::zeros({3, 8}, DType::f64), w); }), dtype_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(Tensor::zeros({3, 8}, DType::i32), w); }), dtype_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(Tensor::zeros({}), w); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(x, Tensor::zeros({5, 8}, DType::f32, Device::meta)); }),
            device_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(x, w, ramp({4})); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::linear(x, w, ramp({5}, DType::bf16)); }), dtype_mismatch);
  ops::LinearOptions options;
  options.residual = ramp({3, 4});
  EXPECT_EQ(refusal([&] { ops::linear(x, w, {}, options); }), shape_mismatch);
  options.residual = ramp({3, 5}, DType::bf16);
  EXPECT_EQ(refusal([&] { ops::linear(x, w, {}, options); }), dtype_mismatch);
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const Tensor a = ramp({3, 8});
  using enum ErrorCode;
  EXPECT_EQ(refusal([&] { ops::matmul(a, Tensor()); }), invalid_argument);
  EXPECT_EQ(refusal([&] { ops::matmul(Tensor(), a); }), invalid_argument);
  EXPECT_EQ(refusal([&] { ops::matmul(a, a); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::matmul(a, ramp({8})); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::matmul(ramp({2, 3, 8}), ramp({3, 8, 4})); }), shape_mismatch);
  EXPECT_EQ(refusal([&] { ops::matmul(a, ramp({8, 2}, DType::bf16)); }), dtype_mismatch);
  EXPECT_EQ(refusal([&] { ops::matmul(a, Tensor::zeros({8, 2}, DType::f32, Device::meta)); }),
            device_mismatch);
}

}  // namespace
}  // namespace heddle
