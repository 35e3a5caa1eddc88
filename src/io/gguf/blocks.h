// How GGUF files store weights: rows of blocks, each a few numbers that its weights share (a scale,
// perhaps an offset) and one small integer per weight. Here blocks become floats; quantize.h is the
// other direction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::io {

// The numbers are those of the format, which has taken some of them back.
enum class BlockType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct BlockFormat {
  BlockType type;
  std::string_view name;
  std::uint32_t weights;  // in one block; rows hold whole blocks
  std::uint32_t bytes;    // of one block
  bool decoded;           // whether dequantize() takes it
};

// Sizes of all types, so that a file with some that Heddle cannot decode can be opened and checked:
// it refuses them when they are asked for.
inline constexpr std::array<BlockFormat, 34> kBlockFormats = {{
    {BlockType::f32, "F32", 1, 4, true},           {BlockType::f16, "F16", 1, 2, true},
    {BlockType::q4_0, "Q4_0", 32, 18, true},       {BlockType::q4_1, "Q4_1", 32, 20, true},
    {BlockType::q5_0, "Q5_0", 32, 22, true},       {BlockType::q5_1, "Q5_1", 32, 24, true},
    {BlockType::q8_0, "Q8_0", 32, 34, true},       {BlockType::q2_k, "Q2_K", 256, 84, true},
    {BlockType::q3_k, "Q3_K", 256, 110, true},     {BlockType::q4_k, "Q4_K", 256, 144, true},
    {BlockType::q5_k, "Q5_K", 256, 176, true},     {BlockType::q6_k, "Q6_K", 256, 210, true},
    {BlockType::q8_k, "Q8_K", 256, 292, false},    {BlockType::iq2_xxs, "IQ2_XXS", 256, 66, false},
    {BlockType::iq2_xs, "IQ2_XS", 256, 74, false}, {BlockType::iq3_xxs, "IQ3_XXS", 256, 98, false},
    {BlockType::iq1_s, "IQ1_S", 256, 50, false},   {BlockType::iq4_nl, "IQ4_NL", 32, 18, true},
    {BlockType::iq3_s, "IQ3_S", 256, 110, false},  {BlockType::iq2_s, "IQ2_S", 256, 82, false},
    {BlockType::iq4_xs, "IQ4_XS", 256, 136, true}, {BlockType::i8, "I8", 1, 1, true},
    {BlockType::i16, "I16", 1, 2, true},           {BlockType::i32, "I32", 1, 4, true},
    {BlockType::i64, "I64", 1, 8, false},          {BlockType::f64, "F64", 1, 8, true},
    {BlockType::iq1_m, "IQ1_M", 256, 56, false},   {BlockType::bf16, "BF16", 1, 2, true},
    {BlockType::tq1_0, "TQ1_0", 256, 54, false},   {BlockType::tq2_0, "TQ2_0", 256, 66, false},
    {BlockType::mxfp4, "MXFP4", 32, 17, true},     {BlockType::nvfp4, "NVFP4", 64, 36, false},
    {BlockType::q1_0, "Q1_0", 128, 18, false},     {BlockType::q2_0, "Q2_0", 64, 18, false},
}};

// Null for a number whose block has no known size: taken back by the format, or newer than this.
constexpr const BlockFormat* find_block_format(std::uint32_t number) noexcept {
  for (const BlockFormat& format : kBlockFormats)
    if (static_cast<std::uint32_t>(format.type) == number) return &format;
  return nullptr;
}

constexpr const BlockFormat& format_of(BlockType type) noexcept {
  return *find_block_format(static_cast<std::uint32_t>(type));
}

// "F32, F16, Q4_0": the names of the types that `wanted` chooses.
template <class Wanted>
std::string block_names(const Wanted& wanted) {
  std::string text;
  for (const BlockFormat& format : kBlockFormats)
    if (wanted(format)) text += (text.empty() ? "" : ", ") + std::string(format.name);
  return text;
}

// "Q4_K (12)", "Q4_2 (4), which no file should have", "99": for errors.
std::string block_type_text(std::uint32_t number);
// All that dequantize() takes.
std::string decoded_types_text();

// Whole blocks to floats, as many as they hold. The values are, bit for bit, those of the format's
// own reference. Throws Error for a type that is not decoded and for sizes that do not fit.
void dequantize(BlockType type, std::span<const std::uint8_t> blocks, std::span<float> values);

}  // namespace heddle::io
