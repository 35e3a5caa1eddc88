#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "heddle/memory.h"
#include "heddle/tensor.h"
#include "tensor/ledger.h"

namespace heddle {
namespace {

Tensor counted(const Shape& shape) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < elements_of(shape); ++i) v.push_back(static_cast<float>(i));
  return Tensor::from<float>(shape, v);
}

using Floats = std::vector<float>;

TEST(Tensor, CarriesValuesOfEveryType) {
  EXPECT_EQ(Tensor::full({2}, 3, DType::i64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(Tensor::full({2}, 7, DType::u8).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{7, 7}));
  for (const DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8})
    EXPECT_EQ(Tensor::full({}, 2, t).item(), 2.0) << to_string(t);
  EXPECT_EQ(Tensor::zeros({2, 2}).to_vector<float>(), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(counted({2, 3}).bytes(), 24u);
}

TEST(Tensor, UndefinedAndMistypedAccessIsRefused) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_THROW(none.shape(), Error);
  EXPECT_THROW(none.raw(), Error);
  EXPECT_EQ(none.describe(), "an undefined tensor");
  EXPECT_THROW(counted({2}).data<double>(), Error);
  EXPECT_THROW(counted({2}).item(), Error);
  EXPECT_THROW(Tensor::from<float>({3}, {1.0f, 2.0f}), Error);
  EXPECT_THROW(Tensor::empty({2}, DType::f32, Device::cuda()), Error);
  EXPECT_THROW(Tensor::empty({2}, DType::f32, Device::meta).raw(), Error);
  EXPECT_THROW(Tensor::empty({1ll << 61}, DType::f64), Error);
}

TEST(Views, ShareStorage) {
  Tensor x = counted({2, 3});
  Tensor t = views::transpose(x, 0, 1);
  EXPECT_EQ(t.to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_FALSE(t.contiguous());
  x.mutable_data<float>()[1] = 9;
  EXPECT_EQ(t.to_vector<float>()[2], 9);
  EXPECT_EQ(t.version(), x.version());
  EXPECT_EQ(views::slice(counted({6}), 0, 1, 6, 2).to_vector<float>(), (Floats{1, 3, 5}));
  EXPECT_EQ(views::broadcast(counted({2, 1}), {2, 2}).to_vector<float>(), (Floats{0, 0, 1, 1}));
  const std::array<int, 2> swap = {1, 0};
  EXPECT_EQ(views::permute(counted({2, 2}), swap).to_vector<float>(), (Floats{0, 2, 1, 3}));
}

TEST(Views, ReshapeFollowsRunsOfMemory) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_EQ(views::reshape(x, {-1, 4}).shape(), (Shape{6, 4}));
  // Dimensions 1 and 2 still form a run when 0 is sliced.
  const Tensor part = views::slice(x, 0, 0, 2, 1);
  EXPECT_TRUE(views::can_reshape(part, {2, 12}));
  const Tensor cut = views::slice(x, 1, 0, 2);  // [2, 2, 4], a gap after each 8
  EXPECT_FALSE(cut.contiguous());
  EXPECT_EQ(views::reshape(cut, {2, 8}).to_vector<float>(), cut.to_vector<float>());
  EXPECT_FALSE(views::can_reshape(cut, {16}));
  EXPECT_THROW(views::reshape(cut, {16}), Error);
  EXPECT_EQ(views::reshape(cut, {1, 2, 4, 2, 1}).to_vector<float>(), cut.to_vector<float>());
  const Tensor t = views::transpose(x, 1, 2);
  EXPECT_FALSE(views::can_reshape(t, {2, 12}));
  EXPECT_THROW(views::reshape(x, {5, -1}), Error);
  EXPECT_THROW(views::reshape(x, {-1, -1}), Error);
  EXPECT_THROW(views::reshape(x, {25}), Error);
}

TEST(Views, BadArgumentsAreRefused) {
  const Tensor x = counted({2, 3});
  EXPECT_THROW(views::slice(x, 1, 2, 4), Error);
  EXPECT_THROW(views::slice(x, 1, -1, 2), Error);
  EXPECT_THROW(views::slice(x, 1, 0, 2, 0), Error);
  EXPECT_THROW(views::slice(x, 2, 0, 1), Error);
  EXPECT_THROW(views::transpose(x, 0, 2), Error);
  EXPECT_THROW(views::broadcast(x, {3}), Error);
  const std::array<int, 2> twice = {0, 0};
  EXPECT_THROW(views::permute(x, twice), Error);
}

TEST(Memory, IsBookedByPurposeAndDevice) {
  for (const Device device : {Device::cpu, Device::meta}) {
    reset_peak_memory(device);
    const MemoryUse before = memory_use(device);
    {
      const PurposeScope scope(Purpose::optimizer);
      const Tensor a = Tensor::empty({100}, DType::f32, device);  // 400 bytes, booked as 448
      const Tensor b = views::slice(a, 0, 0, 10);                 // shares them
      const MemoryUse now = memory_use(device);
      EXPECT_EQ(now.live - before.live, 448);
      EXPECT_EQ(now.live_by_purpose[static_cast<std::size_t>(Purpose::optimizer)] -
                    before.live_by_purpose[static_cast<std::size_t>(Purpose::optimizer)],
                448);
    }
    const MemoryUse after = memory_use(device);
    EXPECT_EQ(after.live, before.live);
    EXPECT_EQ(after.peak - before.live, 448);
    std::int64_t parts = 0;
    for (const std::int64_t bytes : after.at_peak) parts += bytes;
    EXPECT_EQ(parts, after.peak);
  }
}

// Made after the peak of a first step, and there at that of every other.
TEST(Memory, WhatLastsCountsFromTheReset) {
  for (const Device device : {Device::cpu, Device::meta}) {
    const auto step = [device](Tensor& kept) {
      reset_peak_memory(device);
      {
        const Tensor activation = Tensor::empty({100}, DType::f32, device);
      }
      if (!kept.defined()) {
        const PurposeScope purpose(Purpose::workspace);
        const LastingScope lasting;
        kept = Tensor::empty({64}, DType::u8, device);
      }
      const Tensor gradient = Tensor::empty({64}, DType::u8, device);
      return memory_use(device);
    };
    const MemoryUse before = memory_use(device);
    Tensor kept;
    const MemoryUse first = step(kept), second = step(kept);
    EXPECT_EQ(first.peak - before.live, 448 + 64);
    EXPECT_EQ(first.peak, second.peak);
    EXPECT_EQ(first.live, second.live);
    EXPECT_EQ(first.at_peak, second.at_peak);
    EXPECT_EQ(first.peak_by_purpose, second.peak_by_purpose);
    // Given back it is like any other.
    kept = Tensor();
    EXPECT_EQ(memory_use(device).live, before.live);
    EXPECT_EQ(memory_use(device).peak, second.peak);
  }
}

TEST(Memory, MetaTensorsTakeNoRoom) {
  const Tensor huge = Tensor::empty({1ll << 40}, DType::f32, Device::meta);
  EXPECT_EQ(huge.bytes(), std::size_t{1} << 42);
}

TEST(Memory, GuardModeNoticesStrayWrites) {
  set_guard_mode(true);
  const std::int64_t before = guard_violations();
  {
    Tensor t = Tensor::empty({5});
    EXPECT_TRUE(std::isnan(t.data<float>()[0])) << "guard mode fills with NaN";
    volatile float* p = t.mutable_data<float>();
    p[4] = 1;
  }
  EXPECT_EQ(guard_violations(), before);
  {
    Tensor t = Tensor::empty({5});
    volatile float* p = t.mutable_data<float>();
    p[5] = 1;  // the canary belongs to the same allocation: no sanitizer minds
  }
  EXPECT_EQ(guard_violations(), before + 1);
  set_guard_mode(false);
}

TEST(Memory, BlocksAreReusedAndAligned) {
  for (const std::int64_t n : {1, 100, 5000, 3000000}) {
    const Tensor t = Tensor::empty({n});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.raw()) % 64, 0u);
  }
  trim_memory();
}

TEST(Memory, AccountsAreKeptAcrossThreads) {
  const std::int64_t before = memory_use(Device::cpu).live;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 1000; ++j) {
        const Tensor t = Tensor::zeros({j + 1});
        EXPECT_EQ(t.data<float>()[j], 0.0f);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(memory_use(Device::cpu).live, before);
}

}  // namespace
}  // namespace heddle
