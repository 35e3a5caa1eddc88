// The header of a GGUF file: counts, metadata, and where each tensor lies. Every number in it may
// be hostile, so whatever it announces is compared with what the file can still hold, and with the
// memory that this process may use, before memory is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/files/descriptor.h"
#include "io/gguf/blocks.h"
#include "io/gguf/gguf_metadata.h"

namespace heddle::io {

inline constexpr std::int64_t kGgufAlignment = 32;  // where general.alignment says nothing else
inline constexpr std::size_t kGgufDimensions = 4;   // the format's own limit
inline constexpr std::uint64_t kGgufLongestName = 65535;

struct GgufTensor {
  std::string name;
  BlockType type = BlockType::f32;
  std::vector<std::int64_t> shape;  // row-major: the file has the innermost size first
  std::uint64_t offset = 0;         // of its first byte in the file
  std::uint64_t bytes = 0;

  std::int64_t elements() const noexcept;
  std::int64_t row_weights() const noexcept { return shape.empty() ? 1 : shape.back(); }
};

struct GgufHeader {
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the order of the header
};

// The value of general.alignment: tensors begin at multiples of it.
std::uint64_t gguf_alignment(const GgufMetadata& metadata);

// Reads and checks the whole of it. `length` is the file's.
GgufHeader read_gguf_header(const Descriptor& file, const std::string& path, std::uint64_t length);

}  // namespace heddle::io
