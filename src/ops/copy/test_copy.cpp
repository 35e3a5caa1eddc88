// Conversions between all pairs of types, and copies within one storage.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/settings.h"
#include "mock/mock.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"

namespace heddle {
namespace {

constexpr DType kAll[] = {DType::f32, DType::bf16, DType::f16, DType::f64,
                          DType::i32, DType::i64,  DType::u8};

// A number as an element type holds it, by other means than the kernels.
double held(double v, DType dtype) {
  const auto whole = [v](double low, double high) {
    if (std::isnan(v)) return 0.0;
    return std::trunc(std::fmin(std::fmax(v, low), high));
  };
  switch (dtype) {
    case DType::f32: return static_cast<double>(static_cast<float>(v));
    case DType::bf16:
      return static_cast<double>(bf16::from_float(static_cast<float>(v)).to_float());
    case DType::f16: return static_cast<double>(f16::from_float(static_cast<float>(v)).to_float());
    case DType::f64: return v;
    case DType::i32: return whole(-0x1p31, 0x1p31 - 1);
    case DType::i64: return whole(-0x1p63, 0x1p63);  // the limit rounds to it as a double
    case DType::u8: return whole(0, 255);
  }
  return 0;
}

std::vector<double> doubles(const Tensor& x) {
  std::vector<double> all;
  const Tensor flat = views::reshape(ops::contiguous(x), {-1});
  for (std::int64_t i = 0; i < flat.elements(); ++i)
    all.push_back(views::slice(flat, 0, i, i + 1).item());
  return all;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// 36 numbers, so that vectors and their tails see them.
Tensor extremes() {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> v = {0,       -0.0,   0.1,     -0.9,   2.5,    -2.5,   3.999, 100.7, 254.6,
                           255,     256,    300,     -5,     -129,   65504,  65520, 70000, 1e5,
                           -1e5,    0x1p31, -0x1p31, 0x1p32, 0x1p33, 0x1p53, 1e18,  -1e18, 0x1p63,
                           -0x1p63, 0x1p64, 1e30,    -1e30,  1e39,   1e-40,  inf,   -inf,  nan};
  return Tensor::from<double>({4, 9}, v);
}

// Exact wherever a double is: every number is first what the source type makes of it.
TEST(Cast, EveryPairOfTypesOnEveryInstructionSet) {
  const cpu::SettingsScope restore;
  const Tensor numbers = extremes();
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const DType from : kAll) {
      const Tensor source = ops::cast(numbers, from);
      const std::vector<double> read = doubles(source);
      const std::vector<double> given = doubles(numbers);
      for (std::size_t i = 0; i < read.size(); ++i)
        EXPECT_TRUE(same(read[i], held(given[i], from)))
            << given[i] << " as " << to_string(from) << " is " << read[i];
      for (const DType to : kAll)
        for (const bool turned : {false, true}) {
          const Tensor x = turned ? views::transpose(source, 0, 1) : source;
          const std::vector<double> in = doubles(x), out = doubles(ops::cast(x, to));
          for (std::size_t i = 0; i < in.size(); ++i)
            EXPECT_TRUE(same(out[i], held(in[i], to)))
                << cpu::to_string(isa) << ": " << in[i] << " from " << to_string(from) << " to "
                << to_string(to) << " is " << out[i];
        }
    }
  }
}

// What an update that is to change nothing relies on: NaN is 0 as an integer, everywhere.
TEST(Cast, LimitsAreTheSameOnTheMockDevice) {
  const Tensor numbers = extremes();
  const Tensor there = numbers.to(mock::device());
  for (const DType to : {DType::i32, DType::i64, DType::u8})
    EXPECT_EQ(doubles(ops::cast(there, to).to(Device::cpu)), doubles(ops::cast(numbers, to)))
        << to_string(to);
}

TEST(Cast, LargeIntegersKeepTheirDigits) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Tensor x = Tensor::from<std::int64_t>({3}, {large, -large, 300});
  EXPECT_EQ(ops::clone(x).to_vector<std::int64_t>(), x.to_vector<std::int64_t>());
  EXPECT_EQ(ops::cast(x, DType::i32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{INT32_MAX, INT32_MIN, 300}));
  EXPECT_EQ(ops::cast(x, DType::u8).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{255, 0, 255}));
}

Tensor counted(std::int64_t n) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(i));
  return Tensor::from<float>({n}, v);
}

// Large enough for several pieces: each must read what was there before any of them wrote.
TEST(CopyInto, OverlappingViewsAreCopiedAsIfApart) {
  constexpr std::int64_t kCount = 100000;
  for (const std::int64_t shift : {1, 7, 50000}) {
    Tensor x = counted(kCount);
    Tensor front = views::slice(x, 0, 0, kCount - shift);
    Tensor back = views::slice(x, 0, shift, kCount);
    ops::copy_into(back, front);
    const std::vector<float> moved = back.to_vector<float>();
    for (std::size_t i = 0; i < moved.size(); ++i) ASSERT_EQ(moved[i], static_cast<float>(i));
    ops::add_into(front, back);  // front[i] += back[i], of which most lie in front as well
    const std::vector<float> sums = front.to_vector<float>();
    const auto tail = static_cast<std::size_t>(kCount - 2 * shift);
    for (std::size_t i = static_cast<std::size_t>(shift); i < tail; ++i)
      ASSERT_EQ(sums[i], static_cast<float>(2 * i) - static_cast<float>(shift));
  }
}

TEST(CopyInto, TransposesInPlace) {
  Tensor x = views::reshape(counted(90 * 90), {90, 90});
  const std::vector<float> turned = views::transpose(ops::clone(x), 0, 1).to_vector<float>();
  ops::copy_into(x, views::transpose(x, 0, 1));
  EXPECT_EQ(x.to_vector<float>(), turned);
}

TEST(CopyInto, ABroadcastViewIsNoTarget) {
  const Tensor x = counted(12);
  Tensor target = views::broadcast(Tensor::zeros({1}), {12});
  for (const bool adds : {false, true}) {
    try {
      adds ? ops::add_into(target, x) : ops::copy_into(target, x);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.where(), adds ? "add_into" : "copy_into");
      EXPECT_NE(e.problem().find(adds ? "argument target" : "argument dst"), std::string::npos);
      EXPECT_NE(e.got().find("strides [0]"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace heddle
