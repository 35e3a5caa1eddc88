// Floats to blocks of a GGUF file: the other direction of blocks.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/gguf/blocks.h"

namespace heddle::io {

// Whether quantize() writes the type; and "F32, F16, ...", all that it writes.
bool can_quantize(BlockType type) noexcept;
std::string writable_types_text();

// Whole blocks of weights. Q8_0, Q4_0 and Q4_1 have the bytes of the format's reference; Q4_K and
// Q6_K leave the choice of scales to the writer, and here it is the one of a search for the least
// squared error. Throws Error for a type that is not written, for sizes that do not fit, and for
// weights that the type cannot hold: not finite in a block, or too large. `first` is the index that
// errors give to values[0].
void quantize(BlockType type, std::span<const float> values, std::span<std::uint8_t> blocks,
              std::int64_t first = 0);

// One block of 256 weights, all of them finite. False where a scale is beyond the range of f16.
bool encode_q4_k(const float* values, std::uint8_t* block);
bool encode_q6_k(const float* values, std::uint8_t* block);

}  // namespace heddle::io
