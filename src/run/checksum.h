// The checksum of a file's tensors: for what a disk or a copy does to it later. Names, types,
// shapes and places have the header's own (io/safetensors/safetensors_seal.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"

namespace heddle::run {

inline constexpr const char* kChecksumKey = "heddle.crc32";  // in the metadata

// Of the state, if there is one, and of all tensors, in the file's order.
std::string checksum(const std::string& state, const std::vector<io::NamedTensor>& tensors);

// Compares with what the file says of itself; files of before it did are not checked. Throws Error
// where they differ. tensor_of(entry) is what was read.
void check_sum(const io::SafetensorsFile& file,
               const std::function<Tensor(const io::TensorEntry&)>& tensor_of);

}  // namespace heddle::run
