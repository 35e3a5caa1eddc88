#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "heddle/error.h"
#include "io/gguf/block_bits.h"
#include "io/gguf/blocks.h"

namespace heddle::io {
namespace {

constexpr std::uint16_t kHalfOne = 0x3c00, kHalfTwo = 0x4000, kHalfMinusTwo = 0xc000;
constexpr std::uint16_t kHalfOneHalf = 0x3800, kHalfQuarter = 0x3400;

// A block of zeros, in which tests set single bytes.
struct HandBlock {
  explicit HandBlock(BlockType t) : type(t), bytes(format_of(t).bytes) {}

  HandBlock& half(std::size_t at, std::uint16_t bits) {
    bytes.at(at) = static_cast<std::uint8_t>(bits & 0xff);
    bytes.at(at + 1) = static_cast<std::uint8_t>(bits >> 8);
    return *this;
  }
  HandBlock& set(std::size_t at, int byte) {
    bytes.at(at) = static_cast<std::uint8_t>(byte);
    return *this;
  }
  std::vector<float> decoded() const {
    std::vector<float> values(format_of(type).weights, std::nanf(""));
    dequantize(type, bytes, values);
    return values;
  }

  BlockType type;
  std::vector<std::uint8_t> bytes;
};

template <class T>
std::vector<float> decoded_plain(BlockType type, const std::vector<T>& numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  std::vector<float> values(numbers.size());
  dequantize(type, bytes, values);
  return values;
}

TEST(GgufBlocks, TableNamesEveryTypeOnceWithItsSizes) {
  std::set<std::string_view> names;
  for (const BlockFormat& format : kBlockFormats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(&format_of(format.type), &format) << format.name;
    EXPECT_EQ(256 % format.weights, 0u) << format.name;
  }
  EXPECT_EQ(format_of(BlockType::q4_k).bytes, 2u + 2 + 12 + 128);
  EXPECT_EQ(format_of(BlockType::q6_k).bytes, 128u + 64 + 16 + 2);
  EXPECT_EQ(block_type_text(12), "Q4_K (12)");
  EXPECT_EQ(block_type_text(4), "Q4_2 (4), which no file should have");
  EXPECT_EQ(block_type_text(99), "99");
  EXPECT_EQ(find_block_format(4), nullptr);
  EXPECT_EQ(find_block_format(0xffffffff), nullptr);
}

TEST(GgufBlocks, PlainNumbers) {
  const std::vector<float> expected = {1, -2, 0.5f};
  EXPECT_EQ(decoded_plain<float>(BlockType::f32, {1, -2, 0.5f}), expected);
  EXPECT_EQ(decoded_plain<std::uint16_t>(BlockType::f16, {kHalfOne, kHalfMinusTwo, kHalfOneHalf}),
            expected);
  EXPECT_EQ(decoded_plain<std::uint16_t>(BlockType::bf16, {0x3f80, 0xc000, 0x3f00}), expected);
  EXPECT_EQ(decoded_plain<double>(BlockType::f64, {1, -2, 0.5}), expected);
  EXPECT_EQ(decoded_plain<std::int8_t>(BlockType::i8, {-128, 127}),
            (std::vector<float>{-128, 127}));
  EXPECT_EQ(decoded_plain<std::int16_t>(BlockType::i16, {-32768, 256}),
            (std::vector<float>{-32768, 256}));
  EXPECT_EQ(decoded_plain<std::int32_t>(BlockType::i32, {-65536, 16777217}),
            (std::vector<float>{-65536, 16777216}));
}

// d (q - 8), low halves first.
TEST(GgufBlocks, Q4_0) {
  const auto x = HandBlock(BlockType::q4_0).half(0, kHalfOneHalf).set(2, 0x1f).set(17, 0xf8);
  const auto values = x.decoded();
  EXPECT_EQ(values[0], 3.5f);
  EXPECT_EQ(values[16], -3.5f);
  EXPECT_EQ(values[15], 0.0f);
  EXPECT_EQ(values[31], 3.5f);
  EXPECT_EQ(values[1], -4.0f);
}

// d q + m
TEST(GgufBlocks, Q4_1) {
  const auto values = HandBlock(BlockType::q4_1)
                          .half(0, kHalfOneHalf)
                          .half(2, kHalfMinusTwo)
                          .set(4, 0x1f)
                          .decoded();
  EXPECT_EQ(values[0], 5.5f);
  EXPECT_EQ(values[16], -1.5f);
  EXPECT_EQ(values[31], -2.0f);
}

// d (q - 16), the fifth bit apart.
TEST(GgufBlocks, Q5_0) {
  const auto values = HandBlock(BlockType::q5_0)
                          .half(0, kHalfOneHalf)
                          .set(2, 0x01)
                          .set(4, 0x02)
                          .set(6, 0x3f)
                          .decoded();
  EXPECT_EQ(values[0], 7.5f);    // 15 and the fifth bit
  EXPECT_EQ(values[16], -6.5f);  // 3
  EXPECT_EQ(values[17], 0.0f);   // the fifth bit alone
  EXPECT_EQ(values[1], -8.0f);
}

TEST(GgufBlocks, Q5_1) {
  const auto values = HandBlock(BlockType::q5_1)
                          .half(0, kHalfOneHalf)
                          .half(2, kHalfOne)
                          .set(4, 0x01)
                          .set(6, 0x02)
                          .set(8, 0x3f)
                          .decoded();
  EXPECT_EQ(values[0], 16.5f);
  EXPECT_EQ(values[16], 2.5f);
  EXPECT_EQ(values[17], 9.0f);
  EXPECT_EQ(values[1], 1.0f);
}

TEST(GgufBlocks, Q8_0) {
  const auto values =
      HandBlock(BlockType::q8_0).half(0, kHalfTwo).set(2, 0x80).set(3, 127).set(33, 1).decoded();
  EXPECT_EQ(values[0], -256.0f);
  EXPECT_EQ(values[1], 254.0f);
  EXPECT_EQ(values[31], 2.0f);
  EXPECT_EQ(values[2], 0.0f);
}

// d scale q - m offset, 16 weights a group, q of two bits.
TEST(GgufBlocks, Q2_K) {
  const auto values = HandBlock(BlockType::q2_k)
                          .set(0, 0x21)
                          .set(1, 0x10)
                          .set(2, 0x03)
                          .set(15, 0xf1)
                          .set(16, 0b1011)  // weight 0: 3, weight 32: 2
                          .set(79, 0x40)    // weight 255: 1
                          .half(80, kHalfTwo)
                          .half(82, kHalfOneHalf)
                          .decoded();
  EXPECT_EQ(values[0], 5.0f);     // 2 * 1 * 3 - 0.5 * 2
  EXPECT_EQ(values[1], -1.0f);    // - 0.5 * 2
  EXPECT_EQ(values[16], -0.5f);   // - 0.5 * 1
  EXPECT_EQ(values[32], 12.0f);   // 2 * 3 * 2
  EXPECT_EQ(values[255], -5.5f);  // 2 * 1 * 1 - 0.5 * 15
  EXPECT_EQ(values[64], 0.0f);
}

// d (scale - 32) (q - 4), scales of six bits, the third bit of q apart.
TEST(GgufBlocks, Q3_K) {
  const auto values = HandBlock(BlockType::q3_k)
                          .set(0, 0x01)    // third bit of weight 0
                          .set(31, 0x80)   // and of weight 255
                          .set(32, 3)      // weight 0
                          .set(64, 1)      // weight 128
                          .set(95, 0x80)   // weight 255: 2
                          .set(96, 0x21)   // low bits of scales 8 and 0
                          .set(103, 0xf0)  // of scale 15
                          .set(104, 0x22)  // high bits of scales 0 and 8
                          .set(107, 0xc0)  // of scale 15
                          .half(108, kHalfOne)
                          .decoded();
  EXPECT_EQ(values[0], 3.0f);     // scale 33 - 32, q 7 - 4
  EXPECT_EQ(values[1], -4.0f);    // the same scale
  EXPECT_EQ(values[16], 128.0f);  // scale 0 - 32, q 0 - 4
  EXPECT_EQ(values[128], -6.0f);  // scale 34 - 32, q 1 - 4
  EXPECT_EQ(values[255], 62.0f);  // scale 63 - 32, q 6 - 4
}

// The head of Q4_K and Q5_K: d, m, and three groups. Group 0 has scale 5 and offset 6, group 4 has
// 42 and 27, group 7 has 63 and 63.
HandBlock with_three_groups(BlockType type) {
  return HandBlock(type)
      .half(0, kHalfOneHalf)
      .half(2, kHalfQuarter)
      .set(4, 0x85)
      .set(8, 0x46)
      .set(12, 0xba)
      .set(7, 0xc0)
      .set(11, 0xc0)
      .set(15, 0xff);
}

// d scale q - m offset, 32 weights a group.
TEST(GgufBlocks, Q4_K) {
  const auto values = with_three_groups(BlockType::q4_k)
                          .set(16, 0xff)   // weights 0 and 32
                          .set(80, 0x02)   // weight 128
                          .set(143, 0x10)  // weight 255
                          .decoded();
  EXPECT_EQ(values[0], 36.0f);     // 0.5 * 5 * 15 - 0.25 * 6
  EXPECT_EQ(values[1], -1.5f);     // - 0.25 * 6
  EXPECT_EQ(values[32], 0.0f);     // a group of zeros
  EXPECT_EQ(values[128], 35.25f);  // 0.5 * 42 * 2 - 0.25 * 27
  EXPECT_EQ(values[129], -6.75f);  // - 0.25 * 27
  EXPECT_EQ(values[255], 15.75f);  // 0.5 * 63 - 0.25 * 63
}

TEST(GgufBlocks, Q5_K) {
  const auto values = with_three_groups(BlockType::q5_k)
                          .set(16, 0x11)  // fifth bits of weights 0 and 128
                          .set(47, 0x80)  // and of weight 255
                          .set(48, 0x0f)
                          .set(112, 0x02)
                          .decoded();
  EXPECT_EQ(values[0], 76.0f);      // 0.5 * 5 * 31 - 0.25 * 6
  EXPECT_EQ(values[128], 371.25f);  // 0.5 * 42 * 18 - 0.25 * 27
  EXPECT_EQ(values[255], 488.25f);  // 0.5 * 63 * 16 - 0.25 * 63
  EXPECT_EQ(values[1], -1.5f);
}

// d scale (q - 32), 16 weights a group, the upper two of six bits apart.
TEST(GgufBlocks, Q6_K) {
  const auto values = HandBlock(BlockType::q6_k)
                          .set(0, 0x1f)    // weights 0 and 64
                          .set(127, 0x10)  // weight 255
                          .set(128, 0x23)  // upper bits of weights 0 and 64
                          .set(191, 0x80)  // of weight 255
                          .set(192, 2)     // scale of weights 0 to 15
                          .set(196, 0xfd)  // -3, of weights 64 to 79
                          .set(207, 127)   // of weights 240 to 255
                          .half(208, kHalfOneHalf)
                          .decoded();
  EXPECT_EQ(values[0], 31.0f);    // 0.5 * 2 * (63 - 32)
  EXPECT_EQ(values[1], -32.0f);   // 0.5 * 2 * (0 - 32)
  EXPECT_EQ(values[64], -1.5f);   // 0.5 * -3 * (33 - 32)
  EXPECT_EQ(values[255], 63.5f);  // 0.5 * 127 * (33 - 32)
  EXPECT_EQ(values[16], 0.0f);
}

TEST(GgufBlocks, IQ4_NL) {
  const auto values = HandBlock(BlockType::iq4_nl).half(0, kHalfOne).set(2, 0x8f).decoded();
  EXPECT_EQ(values[0], 113.0f);
  EXPECT_EQ(values[16], 1.0f);
  EXPECT_EQ(values[1], -127.0f);
}

// d (scale - 32) times one of 16 values.
TEST(GgufBlocks, IQ4_XS) {
  const auto values = HandBlock(BlockType::iq4_xs)
                          .half(0, kHalfOneHalf)
                          .set(2, 0x02)
                          .set(3, 0xc0)
                          .set(4, 0x01)
                          .set(7, 0xf0)
                          .set(8, 0x8f)
                          .decoded();
  EXPECT_EQ(values[0], 56.5f);       // 0.5 * (33 - 32) * 113
  EXPECT_EQ(values[16], 0.5f);       // 0.5 * 1 * 1
  EXPECT_EQ(values[32], 2032.0f);    // 0.5 * -32 * -127
  EXPECT_EQ(values[255], -1968.5f);  // 0.5 * (63 - 32) * -127
}

TEST(GgufBlocks, MXFP4) {
  const auto one = HandBlock(BlockType::mxfp4).set(0, 127).set(1, 0x97).set(16, 0xf5).decoded();
  EXPECT_EQ(one[0], 6.0f);
  EXPECT_EQ(one[16], -0.5f);
  EXPECT_EQ(one[15], 3.0f);
  EXPECT_EQ(one[31], -6.0f);
  EXPECT_EQ(one[1], 0.0f);
  // 2^-127 and 2^-126, of which the first is no normal float, and the largest power there is.
  EXPECT_EQ(HandBlock(BlockType::mxfp4).set(0, 0).set(1, 2).decoded()[0], 0x1p-127f);
  EXPECT_EQ(HandBlock(BlockType::mxfp4).set(0, 1).set(1, 2).decoded()[0], 0x1p-126f);
  EXPECT_EQ(HandBlock(BlockType::mxfp4).set(0, 2).set(1, 2).decoded()[0], 0x1p-125f);
  EXPECT_EQ(HandBlock(BlockType::mxfp4).set(0, 254).set(1, 2).decoded()[0], 0x1p127f);
}

TEST(GgufBlocks, SecondBlockFollowsTheFirst) {
  std::vector<std::uint8_t> bytes = HandBlock(BlockType::q8_0).half(0, kHalfOne).set(2, 3).bytes;
  const auto second = HandBlock(BlockType::q8_0).half(0, kHalfTwo).set(33, 5).bytes;
  bytes.insert(bytes.end(), second.begin(), second.end());
  std::vector<float> values(64);
  dequantize(BlockType::q8_0, bytes, values);
  EXPECT_EQ(values[0], 3.0f);
  EXPECT_EQ(values[32], 0.0f);
  EXPECT_EQ(values[63], 10.0f);
}

TEST(GgufBlocks, GroupsOfSixBitsComeBack) {
  std::uint8_t packed[kGroupBytes] = {};
  for (std::size_t g = 0; g < kGroups; ++g)
    pack_group(packed, g,
               {static_cast<std::uint8_t>(63 - 7 * g), static_cast<std::uint8_t>(9 * g)});
  for (std::size_t g = 0; g < kGroups; ++g) {
    EXPECT_EQ(unpack_group(packed, g).scale, 63 - 7 * g);
    EXPECT_EQ(unpack_group(packed, g).offset, 9 * g);
  }
}

std::string block_refusal(BlockType type, std::size_t bytes, std::size_t weights) {
  const std::vector<std::uint8_t> blocks(bytes);
  std::vector<float> values(weights);
  try {
    dequantize(type, blocks, values);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(GgufBlocks, EveryTypeIsDecodedOrRefusedByName) {
  for (const BlockFormat& format : kBlockFormats) {
    const std::string message = block_refusal(format.type, format.bytes, format.weights);
    const std::string expected = format.decoded
                                     ? "nothing was thrown"
                                     : block_type_text(static_cast<std::uint32_t>(format.type));
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
  EXPECT_NE(block_refusal(static_cast<BlockType>(77), 0, 0).find("77"), std::string::npos);
}

TEST(GgufBlocks, SizesMustFit) {
  for (const auto& [bytes, weights] : {std::pair{17, 32}, {18, 31}, {36, 32}, {18, 64}, {0, 32}})
    EXPECT_NE(block_refusal(BlockType::q4_0, static_cast<std::size_t>(bytes),
                            static_cast<std::size_t>(weights))
                  .find("18 bytes for every 32 weights"),
              std::string::npos);
  EXPECT_EQ(block_refusal(BlockType::q4_0, 0, 0), "nothing was thrown");
}

}  // namespace
}  // namespace heddle::io
