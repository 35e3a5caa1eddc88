// The checksum of a safetensors header that Heddle wrote: names, types, shapes, places and
// metadata. It is part of the metadata and is taken with zeros in its own place. It does not cover
// the bytes of the tensors: they are up to the code that writes them (train/checkpoint.h).
#pragma once

#include <string>
#include <string_view>

#include "io/safetensors/safetensors.h"

namespace heddle::io {

inline constexpr const char* kHeaderSumKey = "heddle.header_crc32";
inline constexpr std::string_view kNoSum = "00000000";

// Whether a file with this metadata is one of Heddle's own: only those are sealed.
bool is_own(const Metadata& metadata);

// Puts the checksum into a header that has zeros for it; leaves others as they are.
void seal_header(std::string& header);

// Error where the header has a checksum that is not its own, and where a file of Heddle's has
// metadata that Heddle does not write: by a damaged name the checksum would be lost.
void check_header_seal(const std::string& path, std::string header, const Metadata& metadata);

}  // namespace heddle::io
