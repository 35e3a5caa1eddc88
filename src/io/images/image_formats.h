// The two decoders, as image.cpp calls them. Both libraries report errors by longjmp: everything
// they jump over is theirs, and no object with a destructor lives in a function that calls setjmp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/images/image.h"

namespace heddle::io {

// Rows from the top, channels side by side; 2 and 4 channels have alpha as their last.
struct Pixels {
  std::size_t width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> values;
};

// Throws Error naming `where`; call it before memory for the pixels is taken.
void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& where,
                      const ImageLimits& limits);

Pixels decode_png(std::string_view bytes, const std::string& where, const ImageLimits& limits);
Pixels decode_jpeg(std::string_view bytes, const std::string& where, const ImageLimits& limits);

}  // namespace heddle::io
