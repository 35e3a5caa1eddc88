// Image files by their content: one image of a PNG or JPEG, all images of an IDX file.
#pragma once

#include <string>
#include <vector>

#include "data/codec/codec.h"
#include "heddle/tensor.h"

namespace heddle::generate {

struct NamedImage {
  std::string name;  // the file; of an IDX file with the image's number from 0: "images[3]"
  Tensor pixels;     // u8 [C, H, W]
};

// Throws Error naming the file when it is none of these.
std::vector<NamedImage> read_images(const std::string& path);

// Throws Error naming the image, its size and the one that the model learned from, when they
// differ. Grey images are fine for a model of colours.
void check_size(const NamedImage& image, const data::ImageFacts& learned);

}  // namespace heddle::generate
