#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/memory_error.h"
#include "base/number_text.h"
#include "heddle/dtype.h"
#include "heddle/error.h"
#include "heddle/random.h"
#include "heddle/shape.h"

namespace heddle {
namespace {

TEST(Error, MessageNamesPlaceProblemExpectedAndGot) {
  try {
    fail(ErrorCode::shape_mismatch, "matmul", "argument b", "shape [3, 4]", "f32 [2, 4] on cpu");
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "matmul: argument b; expected shape [3, 4]; got f32 [2, 4] on cpu");
    EXPECT_EQ(e.code(), ErrorCode::shape_mismatch);
    EXPECT_EQ(e.where(), "matmul");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(DType, NamesGoBothWays) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(to_string(t)), t);
  }
  EXPECT_THROW(dtype_from_name("float32"), Error);
}

// bf16 -> float -> bf16 is the identity, and every float rounds to the nearest bf16, ties to even.
TEST(DType, Bf16RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 b{static_cast<std::uint16_t>(bits)};
    if (std::isnan(b.to_float())) {
      EXPECT_TRUE(std::isnan(bf16::from_float(b.to_float()).to_float()));
      continue;
    }
    ASSERT_EQ(bf16::from_float(b.to_float()).bits, b.bits);
  }
  EXPECT_EQ(bf16::from_float(1.0f + 0x1p-8f).bits, bf16::from_float(1.0f).bits);             // tie
  EXPECT_EQ(bf16::from_float(1.0f + 3 * 0x1p-8f).bits, bf16::from_float(1 + 0x1p-6f).bits);  // tie
  EXPECT_EQ(bf16::from_float(1.0f + 0x1.02p-8f).bits, bf16::from_float(1 + 0x1p-7f).bits);
}

TEST(DType, F16ConvertsExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const f16 h{static_cast<std::uint16_t>(bits)};
    const float f = h.to_float();
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(f16::from_float(f).to_float()));
      continue;
    }
    ASSERT_EQ(f16::from_float(f).bits, h.bits) << f;
  }
  EXPECT_EQ(f16{0x3c00}.to_float(), 1.0f);
  EXPECT_EQ(f16{0x0001}.to_float(), 0x1p-24f);
  EXPECT_EQ(f16{0x7bff}.to_float(), 65504.0f);
  EXPECT_EQ(f16::from_float(65520.0f).bits, 0x7c00);  // rounds up to infinity
  EXPECT_EQ(f16::from_float(65519.0f).bits, 0x7bff);
  EXPECT_EQ(f16::from_float(1.0f + 0x1p-11f).bits, 0x3c00);      // tie to even
  EXPECT_EQ(f16::from_float(1.0f + 3 * 0x1p-11f).bits, 0x3c02);  // tie to even
}

TEST(Shape, CountsAndRefuses) {
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({2, 3, 4}), 24);
  EXPECT_EQ(elements_of({1ll << 62, 0, 1ll << 62}), 0);
  EXPECT_THROW(elements_of({1ll << 62, 4}), Error);
  EXPECT_THROW(elements_of({2, -1}), Error);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(broadcast_shapes({5, 1, 3}, {4, 1}, "t"), (Shape{5, 4, 3}));
  EXPECT_THROW(broadcast_shapes({5}, {4}, "t"), Error);
  EXPECT_EQ(normalize_dim(-1, 3, "t"), 2);
  EXPECT_THROW(normalize_dim(3, 3, "t"), Error);
  EXPECT_THROW(normalize_dim(0, 0, "t"), Error);
}

TEST(NumberText, IsShortAndExact) {
  EXPECT_EQ(number_text(-1), "-1");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e-9), "1e-09");
  EXPECT_EQ(number_text(1e30), "1e+30");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::denorm_min()), "-5e-324");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(number_text(std::nan("")), "nan");
}

// Known answers of Random123's philox4x32-10 (counter, key) -> block.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({~0ull, ~0u, ~0u}, ~0ull),
            (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_LT(unit_float(~0u), 1.0f);
  EXPECT_EQ(unit_float(0), 0.0f);
}

TEST(WithStage, NamesWhatMemoryWasFor) {
  const auto message = [](const auto& body) {
    try {
      with_stage("reading the data", [&] { with_stage("step 12", body); });
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_TRUE(message([] {
                throw std::bad_alloc();
              }).starts_with("reading the data: step 12: out of memory; expected "));
  EXPECT_TRUE(message([] {
                throw std::length_error("vector");
              }).starts_with("reading the data: step 12: out of memory"));
  EXPECT_EQ(message([] { fail(ErrorCode::out_of_memory, "tensor", "none", "8 bytes", "0"); }),
            "reading the data: step 12: tensor: none; expected 8 bytes; got 0");
  EXPECT_EQ(with_stage("a", [] { return 17; }), 17);
  try {
    with_stage("a", [] { fail(ErrorCode::io, "file", "is missing"); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "file: is missing");  // others stay as they are
  }
}

}  // namespace
}  // namespace heddle
