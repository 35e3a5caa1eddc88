// Pieces of blocks that reading and writing share: numbers of two bytes, and the two tables of
// small integers that several types pack in the same way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::io {

inline constexpr std::size_t kBlock = 32;        // weights in a plain block
inline constexpr std::size_t kSuperBlock = 256;  // and in one of the K types

inline float half_at(const std::uint8_t* at) {
  return f16{static_cast<std::uint16_t>(at[0] | at[1] << 8)}.to_float();
}

inline void put_half(std::uint8_t* at, float value) {
  const std::uint16_t bits = f16::from_float(value).bits;
  at[0] = static_cast<std::uint8_t>(bits & 0xff);
  at[1] = static_cast<std::uint8_t>(bits >> 8);
}

// Scale and offset of one of the eight groups of a Q4_K or Q5_K block, six bits each.
struct ScaleAndOffset {
  std::uint8_t scale = 0;
  std::uint8_t offset = 0;
};

inline constexpr std::size_t kGroups = 8;       // of a Q4_K or Q5_K block, 32 weights each
inline constexpr std::size_t kGroupBytes = 12;  // that hold their scales and offsets

// Bytes 0-3 hold the scales of groups 0-3, bytes 4-7 their offsets, six bits each. Bytes 8-11 hold
// four bits of the scale and of the offset of groups 4-7; the two bits that are missing stand above
// the six of bytes 0-3 and 4-7.
inline ScaleAndOffset unpack_group(const std::uint8_t* packed, std::size_t group) {
  if (group < 4)
    return {static_cast<std::uint8_t>(packed[group] & 63),
            static_cast<std::uint8_t>(packed[group + 4] & 63)};
  const std::uint8_t low = packed[group + 4];
  return {static_cast<std::uint8_t>((low & 15) | (packed[group - 4] >> 6) << 4),
          static_cast<std::uint8_t>(low >> 4 | (packed[group] >> 6) << 4)};
}

// Into bytes that were zero.
inline void pack_group(std::uint8_t* packed, std::size_t group, ScaleAndOffset values) {
  const auto add = [&](std::size_t at, int bits) {
    packed[at] = static_cast<std::uint8_t>(packed[at] | bits);
  };
  if (group < 4) {
    add(group, values.scale);
    add(group + 4, values.offset);
    return;
  }
  add(group + 4, (values.scale & 15) | (values.offset & 15) << 4);
  add(group - 4, values.scale >> 4 << 6);
  add(group, values.offset >> 4 << 6);
}

}  // namespace heddle::io
