// Whether an image fits a model.
#pragma once

#include "data/codec/codec.h"
#include "heddle/images.h"

namespace heddle::generate {

// Throws Error naming the image, its size (resized, where the model's files ask for it) and the one
// that the model learned from, when they differ. Grey images are fine for a model of colours.
void check_size(const NamedImage& image, const data::ImageFacts& learned);

}  // namespace heddle::generate
