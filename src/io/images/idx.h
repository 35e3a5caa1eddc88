// IDX files: what MNIST and Fashion-MNIST ship, plain or gzip.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle::io {

// A u8 tensor of the file's shape: images [N, H, W], labels [N]. Files of other types are refused,
// and so is one whose length is not what its sizes say.
Tensor read_idx(const std::string& path, std::size_t max_bytes = std::size_t{2} << 30);
Tensor parse_idx(std::string_view bytes, const std::string& where);

}  // namespace heddle::io
