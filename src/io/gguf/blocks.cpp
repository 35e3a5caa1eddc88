#include "io/gguf/blocks.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "heddle/dtype.h"
#include "heddle/error.h"
#include "io/gguf/block_bits.h"

namespace heddle::io {
namespace {

// Each function below decodes one block. d is the scale that the block's weights share, q the
// integer of one weight; products are taken in the order of the reference, because floats that are
// multiplied in another order are other floats.
using DecodeBlock = void (*)(const std::uint8_t* block, float* out);

template <class T>
void decode_plain(const std::uint8_t* block, float* out) {
  T value{};
  std::memcpy(&value, block, sizeof value);
  if constexpr (requires { value.to_float(); })
    *out = value.to_float();
  else
    *out = static_cast<float>(value);
}

// Weights of 4 bits, two in a byte: the low halves are the first half of the weights.
template <class Put>
void each_nibble(const std::uint8_t* bytes, std::size_t count, const Put& put) {
  for (std::size_t i = 0; i < count; ++i) {
    put(i, bytes[i] & 15);
    put(i + count, bytes[i] >> 4);
  }
}

// [d f16][16 bytes]: d (q - 8)
void decode_q4_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  each_nibble(block + 2, 16, [&](std::size_t i, int q) { out[i] = d * static_cast<float>(q - 8); });
}

// [d f16][m f16][16 bytes]: d q + m
void decode_q4_1(const std::uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  each_nibble(block + 4, 16, [&](std::size_t i, int q) { out[i] = d * static_cast<float>(q) + m; });
}

// The fifth bit of weight i is bit i of four bytes.
int fifth_bit(const std::uint8_t* high, std::size_t i) { return (high[i / 8] >> (i % 8) & 1) << 4; }

// [d f16][4 bytes of fifth bits][16 bytes]: d (q - 16)
void decode_q5_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  each_nibble(block + 6, 16, [&](std::size_t i, int q) {
    out[i] = d * static_cast<float>((q | fifth_bit(block + 2, i)) - 16);
  });
}

// [d f16][m f16][4 bytes of fifth bits][16 bytes]: d q + m
void decode_q5_1(const std::uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  each_nibble(block + 8, 16, [&](std::size_t i, int q) {
    out[i] = d * static_cast<float>(q | fifth_bit(block + 4, i)) + m;
  });
}

// [d f16][32 signed bytes]: d q
void decode_q8_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

// Weight i of a super-block whose weights have two bits: four of them in a byte, 32 apart.
int two_bits(const std::uint8_t* bytes, std::size_t i) {
  return bytes[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3;
}

// [16 bytes: scale low, offset high][64 bytes][d f16][m f16]: d scale q - m offset, by 16 weights
void decode_q2_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* weights = block + 16;
  const float d = half_at(block + 80), m = half_at(block + 82);
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const int packed = block[i / 16];
    const float scale = d * static_cast<float>(packed & 15);
    const float offset = m * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(two_bits(weights, i)) - offset;
  }
}

// The 16 scales of Q3_K, 6 bits each: four of scales 0-7 in the low halves of eight bytes, of 8-15
// in the high ones; two above them in the four bytes that follow.
int q3_scale(const std::uint8_t* packed, std::size_t group) {
  const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
  const int high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
  return (low | high << 4) - 32;
}

// [32 bytes of third bits][64 bytes][12 bytes of scales][d f16]: d scale (q - 4), by 16 weights;
// the third bit is worth 4.
void decode_q3_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* weights = block + 32;
  const float d = half_at(block + 108);
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const float scale = d * static_cast<float>(q3_scale(block + 96, i / 16));
    const int third = block[i % 32] >> (i / 32) & 1;
    out[i] = scale * static_cast<float>(two_bits(weights, i) + 4 * third - 4);
  }
}

// Weight i of a super-block whose groups of 32 lie two by two in the halves of 32 bytes.
int four_bits(const std::uint8_t* bytes, std::size_t i) {
  return bytes[i / 64 * 32 + i % 32] >> (4 * (i / 32 % 2)) & 15;
}

// [d f16][m f16][12 bytes of scales and offsets][128 bytes]: d scale q - m offset, by 32 weights.
// Q5_K has 32 bytes of fifth bits before the 128: bit g of byte i for weight i of group g.
template <bool five_bits>
void decode_q45_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  const std::uint8_t* fifth = block + 4 + kGroupBytes;
  const std::uint8_t* weights = fifth + (five_bits ? 32 : 0);
  for (std::size_t group = 0; group < kGroups; ++group) {
    const ScaleAndOffset packed = unpack_group(block + 4, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float offset = m * static_cast<float>(packed.offset);
    for (std::size_t i = 0; i < kBlock; ++i) {
      int q = four_bits(weights, group * kBlock + i);
      if constexpr (five_bits) q |= (fifth[i] >> group & 1) << 4;
      out[group * kBlock + i] = scale * static_cast<float>(q) - offset;
    }
  }
}

// [128 bytes: low 4 bits][64 bytes: high 2 bits][16 signed scales][d f16]: d scale (q - 32), by 16
// weights. The low halves of 64 bytes are 64 weights, the high halves the next 64.
void decode_q6_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block + 208);
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const auto scale = static_cast<std::int8_t>(block[192 + i / 16]);
    const int low = block[i / 128 * 64 + i % 64] >> (4 * (i / 64 % 2)) & 15;
    const int q = (low | two_bits(block + 128, i) << 4) - 32;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q);
  }
}

// Four bits choose one of 16 values that lie densely near zero, where weights do.
constexpr std::array<std::int8_t, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};

// [d f16][16 bytes]: d uneven[q]
void decode_iq4_nl(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  each_nibble(block + 2, 16, [&](std::size_t i, int q) {
    out[i] = d * static_cast<float>(kUneven[static_cast<std::size_t>(q)]);
  });
}

// [d f16][u16: high 2 bits of 8 scales][4 bytes: their low 4][128 bytes]: d (scale - 32) uneven[q],
// by 32 weights
void decode_iq4_xs(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  const int high = block[2] | block[3] << 8;
  for (std::size_t group = 0; group < kGroups; ++group) {
    const int low = block[4 + group / 2] >> (4 * (group % 2)) & 15;
    const float scale = d * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32);
    each_nibble(block + 8 + 16 * group, 16, [&](std::size_t i, int q) {
      out[group * kBlock + i] = scale * static_cast<float>(kUneven[static_cast<std::size_t>(q)]);
    });
  }
}

// Twice the values of a 4-bit float with 2 bits of exponent and 1 of mantissa.
constexpr std::array<std::int8_t, 16> kDoubledE2M1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(e - 127): half, because the values above are doubled. The two smallest are subnormal.
float half_power(std::uint8_t e) {
  return std::bit_cast<float>(e < 2 ? std::uint32_t{0x00200000} << e : (e - 1u) << 23);
}

// [e: a power of two][16 bytes]: 2^(e - 127) q
void decode_mxfp4(const std::uint8_t* block, float* out) {
  const float d = half_power(block[0]);
  each_nibble(block + 1, 16, [&](std::size_t i, int q) {
    out[i] = d * static_cast<float>(kDoubledE2M1[static_cast<std::size_t>(q)]);
  });
}

DecodeBlock decoder_of(BlockType type) {
  switch (type) {
    case BlockType::f32: return decode_plain<float>;
    case BlockType::f16: return decode_plain<f16>;
    case BlockType::bf16: return decode_plain<bf16>;
    case BlockType::f64: return decode_plain<double>;
    case BlockType::i8: return decode_plain<std::int8_t>;
    case BlockType::i16: return decode_plain<std::int16_t>;
    case BlockType::i32: return decode_plain<std::int32_t>;
    case BlockType::q4_0: return decode_q4_0;
    case BlockType::q4_1: return decode_q4_1;
    case BlockType::q5_0: return decode_q5_0;
    case BlockType::q5_1: return decode_q5_1;
    case BlockType::q8_0: return decode_q8_0;
    case BlockType::q2_k: return decode_q2_k;
    case BlockType::q3_k: return decode_q3_k;
    case BlockType::q4_k: return decode_q45_k<false>;
    case BlockType::q5_k: return decode_q45_k<true>;
    case BlockType::q6_k: return decode_q6_k;
    case BlockType::iq4_nl: return decode_iq4_nl;
    case BlockType::iq4_xs: return decode_iq4_xs;
    case BlockType::mxfp4: return decode_mxfp4;
    default: return nullptr;
  }
}

// Numbers that the format has taken back, and one that only computations use.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 9> kNotInFiles = {{
    {4, "Q4_2"},
    {5, "Q4_3"},
    {9, "Q8_1"},
    {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},
    {36, "IQ4_NL_4_4"},
    {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"},
}};

}  // namespace

std::string block_type_text(std::uint32_t number) {
  std::string digits = std::to_string(number);
  if (const BlockFormat* format = find_block_format(number))
    return std::string(format->name) + " (" + digits + ")";
  for (const auto& [known, name] : kNotInFiles)
    if (known == number) return std::string(name) + " (" + digits + "), which no file should have";
  return digits;
}

std::string decoded_types_text() {
  return block_names([](const BlockFormat& format) { return format.decoded; });
}

void dequantize(BlockType type, std::span<const std::uint8_t> blocks, std::span<float> values) {
  const DecodeBlock decode = decoder_of(type);
  if (decode == nullptr)
    fail(ErrorCode::unsupported, "dequantize", "blocks of a type that Heddle does not decode",
         decoded_types_text(), block_type_text(static_cast<std::uint32_t>(type)));
  const BlockFormat& format = format_of(type);
  const std::size_t count = blocks.size() / format.bytes;
  if (blocks.size() % format.bytes != 0 || values.size() % format.weights != 0 ||
      values.size() / format.weights != count)
    fail(ErrorCode::invalid_argument, "dequantize",
         "sizes do not fit for " + std::string(format.name),
         std::to_string(format.bytes) + " bytes for every " + std::to_string(format.weights) +
             " weights",
         std::to_string(blocks.size()) + " bytes for " + std::to_string(values.size()));
  for (std::size_t b = 0; b < count; ++b)
    decode(blocks.data() + b * format.bytes, values.data() + b * format.weights);
}

}  // namespace heddle::io
