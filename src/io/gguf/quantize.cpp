#include "io/gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/number_text.h"
#include "heddle/dtype.h"
#include "heddle/error.h"
#include "io/gguf/block_bits.h"

namespace heddle::io {
namespace {

// Each encodes one block, and is false where the block cannot hold the values. The arithmetic is in
// float and in the order of the reference: another order gives other bytes.
using EncodeBlock = bool (*)(const float* values, std::uint8_t* block);

template <class T>
bool encode_plain(const float* value, std::uint8_t* block) {
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(block, value, sizeof *value);
    return true;
  } else {
    const T rounded = T::from_float(*value);
    std::memcpy(block, &rounded, sizeof rounded);
    return std::isfinite(rounded.to_float()) || !std::isfinite(*value);
  }
}

// 1 / d as the blocks use it: 0 for a block of zeros, and for one so small that 1 / d is infinite,
// whose scale is 0 in f16 anyway.
float inverse_of(float d) {
  const float inverse = d == 0 ? 0 : 1 / d;
  return std::isfinite(inverse) ? inverse : 0;
}

bool put_scale(std::uint8_t* at, float value) {
  put_half(at, value);
  return std::isfinite(half_at(at));
}

bool encode_q8_0(const float* values, std::uint8_t* block) {
  float largest = 0;
  for (std::size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(values[i]));
  const float d = largest / 127;
  if (!put_scale(block, d)) return false;
  const float inverse = inverse_of(d);
  for (std::size_t i = 0; i < kBlock; ++i)
    block[2 + i] = static_cast<std::uint8_t>(static_cast<int>(std::round(values[i] * inverse)));
  return true;
}

// quantised(x) is a float whose integer part, at most 15, is the weight.
template <class Quantised>
void put_nibbles(const float* values, std::uint8_t* bytes, const Quantised& quantised) {
  const auto nibble = [&](std::size_t i) {
    return static_cast<int>(std::clamp(quantised(values[i]), 0.0f, 15.0f));
  };
  for (std::size_t i = 0; i < kBlock / 2; ++i)
    bytes[i] = static_cast<std::uint8_t>(nibble(i) | nibble(i + kBlock / 2) << 4);
}

// The weight of the largest magnitude becomes -8, so that one of the two signs has all 8 steps.
bool encode_q4_0(const float* values, std::uint8_t* block) {
  const float* largest = values;
  for (const float* x = values; x != values + kBlock; ++x)
    if (std::abs(*x) > std::abs(*largest)) largest = x;
  const float d = *largest / -8;
  if (!put_scale(block, d)) return false;
  const float inverse = inverse_of(d);
  put_nibbles(values, block + 2, [&](float x) { return x * inverse + 8.5f; });
  return true;
}

bool encode_q4_1(const float* values, std::uint8_t* block) {
  const auto [low, high] = std::minmax_element(values, values + kBlock);
  const float m = *low, d = (*high - m) / 15;
  if (!put_scale(block, d) || !put_scale(block + 2, m)) return false;
  const float inverse = inverse_of(d);
  put_nibbles(values, block + 4, [&](float x) { return (x - m) * inverse + 0.5f; });
  return true;
}

EncodeBlock encoder_of(BlockType type) noexcept {
  switch (type) {
    case BlockType::f32: return encode_plain<float>;
    case BlockType::f16: return encode_plain<f16>;
    case BlockType::bf16: return encode_plain<bf16>;
    case BlockType::q8_0: return encode_q8_0;
    case BlockType::q4_0: return encode_q4_0;
    case BlockType::q4_1: return encode_q4_1;
    case BlockType::q4_k: return encode_q4_k;
    case BlockType::q6_k: return encode_q6_k;
    default: return nullptr;
  }
}

// Refuses a block by its first weight that is not finite, or by its largest.
[[noreturn]] void refuse_block(const BlockFormat& format, std::span<const float> values,
                               std::int64_t first) {
  const auto odd = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  const auto large = std::ranges::max_element(values, {}, [](float x) { return std::abs(x); });
  const bool finite = odd == values.end();
  const auto at = finite ? large : odd;
  fail(ErrorCode::invalid_argument, "quantize",
       "weight " + std::to_string(first + (at - values.begin())) + " cannot be written as " +
           std::string(format.name),
       finite ? "a smaller one" : "a finite one", number_text(*at));
}

}  // namespace

bool can_quantize(BlockType type) noexcept { return encoder_of(type) != nullptr; }

std::string writable_types_text() {
  return block_names([](const BlockFormat& format) { return can_quantize(format.type); });
}

void quantize(BlockType type, std::span<const float> values, std::span<std::uint8_t> blocks,
              std::int64_t first) {
  const EncodeBlock encode = encoder_of(type);
  if (encode == nullptr)
    fail(ErrorCode::unsupported, "quantize", "a type that Heddle does not write",
         writable_types_text(), block_type_text(static_cast<std::uint32_t>(type)));
  const BlockFormat& format = format_of(type);
  const std::size_t count = values.size() / format.weights;
  if (values.size() % format.weights != 0 || blocks.size() != count * format.bytes)
    fail(ErrorCode::invalid_argument, "quantize",
         "sizes do not fit for " + std::string(format.name),
         std::to_string(format.bytes) + " bytes for every " + std::to_string(format.weights) +
             " weights",
         std::to_string(blocks.size()) + " bytes for " + std::to_string(values.size()));
  for (std::size_t b = 0; b < count; ++b) {
    const auto block = values.subspan(b * format.weights, format.weights);
    const bool can_hold =
        format.weights == 1 || std::ranges::all_of(block, [](float x) { return std::isfinite(x); });
    if (!can_hold || !encode(block.data(), blocks.data() + b * format.bytes))
      refuse_block(format, block, first + static_cast<std::int64_t>(b * format.weights));
  }
}

}  // namespace heddle::io
