// Image files by their content: one image of a PNG or JPEG, all images of an IDX file.
//
//   for (const heddle::NamedImage& image : heddle::read_images("shoe.png"))
//     std::cout << image.name << " " << image.pixels.describe() << "\n";
#pragma once

#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

struct NamedImage {
  std::string name;  // the file; of an IDX file with the image's number from 0: "images[3]"
  Tensor pixels;     // u8 [C, H, W]
};

// Throws Error naming the file when it is none of these.
std::vector<NamedImage> read_images(const std::string& path);

}  // namespace heddle
