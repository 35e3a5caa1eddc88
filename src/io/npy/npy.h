// NumPy's file of one array, for comparing numbers with other systems.
#pragma once

#include <string>

#include "heddle/tensor.h"

namespace heddle::io {

// Format 1.0, little-endian, row-major; f32, f64, i32, i64 or u8. Written whole or not at all.
std::string encode_npy(const Tensor& array);
void write_npy(const std::string& path, const Tensor& array);

}  // namespace heddle::io
