// Images of data sets: PNG and JPEG, told apart by their first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle::io {

struct ImageLimits {
  std::int64_t max_side = 16384;
  std::int64_t max_pixels = std::int64_t{64} << 20;
  std::size_t max_bytes = std::size_t{256} << 20;  // of the file
};

// u8 [C, H, W], C = 1 for grey images and 3 for others. Palettes are expanded, 16 bits reduced to 8
// by rounding, transparency blended with white. Colour profiles and the orientation that a camera
// noted are not applied. A JPEG whose data end early or are damaged is refused, although its
// decoder could fill up with grey; CMYK is refused too.
Tensor read_image(const std::string& path, const ImageLimits& limits = {});
Tensor decode_image(std::string_view bytes, const std::string& where,
                    const ImageLimits& limits = {});

// PNG of a u8 tensor [C, H, W] with C = 1 or 3.
std::string encode_png(const Tensor& image);
void write_png(const std::string& path, const Tensor& image);

}  // namespace heddle::io
