// Images of any size brought to the one that a model reads: resized, and cut out of the middle, as
// the files of models of others say.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/tensor.h"

namespace heddle::data {

struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// The weights of the pixels around a place; the numbers are those that files give them.
enum class ResizeFilter : std::uint8_t {
  lanczos = 1,
  bilinear = 2,
  bicubic = 3,
  box = 4,
  hamming = 5
};

struct ImageFit {
  std::optional<ImageSize> size = {};  // an image becomes so large,
  std::int64_t shorter = 0;            // or its shorter side so long; 0: neither
  ResizeFilter filter = ResizeFilter::bilinear;
  std::optional<ImageSize> middle = {};  // and so much of its middle is taken
};

inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 24;  // of a resized image

// What an image of this size becomes by being resized, and in the end. Throws Error for one that
// would have more than kMostPixels, or less than what is taken of it.
ImageSize resized_size(const ImageFit& fit, const ImageSize& image);
ImageSize fitted_size(const ImageFit& fit, const ImageSize& image);

// image: u8 [C, H, W] -> u8 [C, ...]
Tensor fitted(const ImageFit& fit, const Tensor& image);

// As the Python Imaging Library does it: a sum over the pixels under the filter, which is stretched
// where the image shrinks; rows first, then columns, rounded to bytes in between. Where height
// shrinks and width grows, columns come first. Of some images that shrink both ways that library
// (13.0) takes the columns first too; pixels then differ by at most 1.
Tensor resized(const Tensor& image, const ImageSize& size, ResizeFilter filter);

}  // namespace heddle::data
