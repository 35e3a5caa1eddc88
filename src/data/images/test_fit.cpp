// Images brought to a model's size: the pixels that the Python Imaging Library and transformers'
// processors make (PIL 13.0, transformers 5.23).
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "data/images/fit.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

std::uint8_t pixel(std::int64_t y, std::int64_t x) {
  return static_cast<std::uint8_t>((37 * y + 91 * x + 13 * x * y * y) % 256);
}

Tensor pattern(std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) bytes.push_back(pixel(y, x));
  return Tensor::from<std::uint8_t>({1, height, width}, bytes);
}

std::vector<int> numbers(const Tensor& image) {
  const auto bytes = image.to_vector<std::uint8_t>();
  return {bytes.begin(), bytes.end()};
}

struct ResizeCase {
  ResizeFilter filter;
  ImageSize size;
  std::vector<int> pixels;
};

// clang-format off
const std::vector<ResizeCase> kResizeCases = {
    {ResizeFilter::lanczos, {3, 3}, {72, 162, 132, 126, 145, 151, 146, 132, 96}},
    {ResizeFilter::lanczos, {4, 9}, {5, 34, 103, 205, 223, 118, 44, 104, 163, 65, 106, 158, 124, 88, 165, 233, 198, 160, 148, 139, 133, 160, 177, 145, 98, 85, 85, 230, 158, 64, 84, 162, 154, 111, 102, 103}},
    {ResizeFilter::lanczos, {10, 2}, {75, 89, 98, 134, 141, 187, 147, 181, 78, 170, 97, 125, 192, 90, 191, 130, 126, 127, 88, 97}},
    {ResizeFilter::lanczos, {7, 8}, {0, 23, 102, 187, 137, 21, 57, 122, 30, 64, 153, 247, 203, 96, 142, 212, 56, 141, 217, 127, 135, 245, 192, 118, 114, 101, 56, 0, 71, 216, 213, 164, 145, 157, 198, 252, 176, 29, 27, 75, 200, 132, 93, 205, 253, 164, 82, 50, 245, 139, 4, 25, 81, 103, 140, 157}},
    {ResizeFilter::bilinear, {3, 3}, {78, 160, 129, 121, 132, 149, 144, 142, 100}},
    {ResizeFilter::bilinear, {4, 9}, {19, 52, 107, 157, 205, 125, 71, 118, 147, 77, 104, 150, 136, 107, 164, 203, 175, 158, 145, 142, 136, 153, 176, 136, 103, 97, 94, 203, 153, 71, 96, 149, 135, 121, 113, 108}},
    {ResizeFilter::bilinear, {10, 2}, {79, 87, 106, 129, 134, 167, 146, 176, 100, 161, 111, 131, 178, 93, 164, 129, 130, 126, 94, 107}},
    {ResizeFilter::bilinear, {7, 8}, {0, 40, 97, 154, 130, 27, 68, 108, 37, 83, 148, 213, 198, 103, 152, 197, 74, 137, 210, 139, 149, 238, 183, 134, 111, 90, 60, 30, 80, 210, 196, 175, 148, 167, 194, 221, 167, 34, 45, 64, 185, 143, 99, 199, 219, 159, 99, 57, 222, 131, 16, 45, 75, 104, 133, 154}},
    {ResizeFilter::bicubic, {3, 3}, {73, 162, 130, 125, 137, 150, 145, 137, 98}},
    {ResizeFilter::bicubic, {4, 9}, {7, 40, 107, 177, 215, 120, 50, 115, 155, 70, 102, 157, 132, 96, 168, 223, 184, 159, 146, 141, 136, 157, 176, 137, 99, 91, 89, 220, 160, 59, 86, 153, 141, 118, 109, 105}},
    {ResizeFilter::bicubic, {10, 2}, {76, 86, 103, 132, 136, 177, 145, 178, 85, 168, 101, 130, 187, 88, 175, 130, 130, 127, 91, 104}},
    {ResizeFilter::bicubic, {7, 8}, {0, 31, 97, 172, 141, 21, 64, 115, 30, 73, 148, 231, 208, 96, 148, 204, 64, 136, 217, 129, 138, 245, 186, 126, 114, 94, 60, 11, 70, 217, 204, 172, 145, 163, 194, 239, 178, 28, 36, 67, 192, 139, 92, 209, 238, 159, 90, 50, 237, 137, 9, 37, 75, 104, 138, 157}},
    {ResizeFilter::box, {3, 3}, {68, 214, 104, 134, 118, 144, 128, 155, 118}},
    {ResizeFilter::box, {4, 9}, {19, 19, 116, 116, 214, 55, 55, 153, 153, 93, 93, 140, 140, 60, 235, 235, 155, 155, 148, 148, 191, 191, 234, 21, 21, 64, 64, 204, 204, 51, 51, 155, 130, 130, 106, 106}},
    {ResizeFilter::box, {10, 2}, {91, 63, 141, 145, 141, 145, 132, 191, 63, 199, 63, 199, 191, 43, 174, 105, 174, 105, 98, 131}},
    {ResizeFilter::box, {7, 8}, {0, 0, 91, 182, 182, 17, 108, 108, 37, 37, 141, 245, 245, 93, 197, 197, 74, 74, 217, 104, 104, 247, 134, 134, 111, 111, 63, 15, 15, 223, 175, 175, 148, 148, 191, 234, 234, 21, 64, 64, 185, 185, 89, 249, 249, 153, 57, 57, 222, 222, 13, 60, 60, 107, 154, 154}},
    {ResizeFilter::hamming, {3, 3}, {66, 175, 128, 118, 110, 154, 149, 152, 104}},
    {ResizeFilter::hamming, {4, 9}, {16, 32, 111, 148, 208, 109, 51, 129, 145, 79, 95, 172, 145, 98, 178, 225, 163, 150, 143, 144, 151, 164, 185, 120, 82, 88, 89, 206, 179, 47, 80, 139, 131, 126, 115, 113}},
    {ResizeFilter::hamming, {10, 2}, {75, 77, 105, 125, 125, 157, 148, 183, 87, 173, 93, 151, 183, 73, 153, 131, 128, 128, 94, 115}},
    {ResizeFilter::hamming, {7, 8}, {0, 33, 92, 169, 159, 18, 75, 108, 37, 74, 142, 230, 224, 94, 160, 197, 74, 125, 216, 120, 124, 246, 174, 134, 111, 94, 63, 22, 44, 222, 192, 175, 148, 163, 191, 228, 204, 22, 49, 64, 185, 151, 90, 227, 236, 154, 91, 57, 222, 147, 13, 53, 67, 107, 137, 154}},
};

const std::vector<std::pair<ResizeFilter, std::int64_t>> kResizeSums = {
    {ResizeFilter::lanczos, 1504314},
    {ResizeFilter::bilinear, 1503468},
    {ResizeFilter::bicubic, 1504740},
    {ResizeFilter::box, 1503693},
    {ResizeFilter::hamming, 1503994},
};

// Of three channels: the pattern, upside down, and its negative.
const std::vector<int> kMiddle = {
    178, 165, 66, 152, 195, 139, 150, 207, 68, 113, 68, 181, 113, 130, 121, 104, 144, 207,
    195, 44, 143, 132, 137, 149, 124, 123, 202, 204, 32, 112, 140, 118, 90, 76, 198, 167,
    140, 118, 90, 76, 198, 167, 124, 123, 202, 204, 32, 112, 195, 44, 143, 132, 137, 149,
    113, 130, 121, 104, 144, 207, 150, 207, 68, 113, 68, 181, 178, 165, 66, 152, 195, 139,
    77, 90, 189, 103, 60, 116, 105, 48, 187, 142, 187, 74, 142, 125, 134, 151, 111, 48,
    60, 211, 112, 123, 118, 106, 131, 132, 53, 51, 223, 143, 115, 137, 165, 179, 57, 88};
// clang-format on

TEST(ImageFit, ResizesAsTheImagingLibraryDoes) {
  for (const ResizeCase& c : kResizeCases) {
    const Tensor out = resized(pattern(7, 5), c.size, c.filter);
    EXPECT_EQ(out.shape(), (Shape{1, c.size.height, c.size.width}));
    EXPECT_EQ(numbers(out), c.pixels) << static_cast<int>(c.filter) << " " << c.size.height;
  }
  for (const auto& [filter, wanted] : kResizeSums) {
    const std::vector<int> all = numbers(resized(pattern(61, 47), {20, 13}, filter));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      sum += all[i] * static_cast<std::int64_t>(i % 97 + 1);
    EXPECT_EQ(sum, wanted) << static_cast<int>(filter);
  }
}

// The shorter side becomes 8 pixels long, and a square of 6 is cut out.
TEST(ImageFit, CutsTheMiddleAsProcessorsDo) {
  std::vector<std::uint8_t> bytes;
  for (int channel = 0; channel < 3; ++channel)
    for (std::int64_t y = 0; y < 9; ++y)
      for (std::int64_t x = 0; x < 13; ++x) {
        const std::uint8_t own = pixel(channel == 1 ? 8 - y : y, x);
        bytes.push_back(channel == 2 ? static_cast<std::uint8_t>(255 - own) : own);
      }
  const ImageFit fit = {.shorter = 8, .filter = ResizeFilter::bicubic, .middle = ImageSize{6, 6}};
  EXPECT_EQ(resized_size(fit, {9, 13}), (ImageSize{8, 11}));
  EXPECT_EQ(resized_size(fit, {13, 9}), (ImageSize{11, 8}));
  EXPECT_EQ(numbers(fitted(fit, Tensor::from<std::uint8_t>({3, 9, 13}, bytes))), kMiddle);
}

TEST(ImageFit, AnImageOfTheSizeStaysAsItIs) {
  const Tensor image = pattern(6, 4);
  EXPECT_EQ(numbers(fitted({.size = ImageSize{6, 4}}, image)), numbers(image));
  EXPECT_EQ(numbers(fitted({.middle = ImageSize{6, 4}}, image)), numbers(image));
}

std::string fit_refusal(const ImageFit& fit, const ImageSize& image) {
  try {
    (void)fitted_size(fit, image);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ImageFit, SizesAreBoundedBeforeMemoryIsTaken) {
  const auto refused = [](const ImageFit& fit, const ImageSize& image, const char* part) {
    const std::string message = fit_refusal(fit, image);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refused({.shorter = 60000}, {1, 65536}, "resized from 1 × 65536");
  refused({.size = ImageSize{65536, 65536}}, {2, 2}, "65536 × 65536");
  refused({.middle = ImageSize{3, 3}}, {2, 9}, "its middle");
  refused({.shorter = 8}, {0, 9}, "pixels");
  // Rows come first: many of them, each of which becomes long.
  EXPECT_THROW((void)resized(Tensor::zeros({1, 1 << 16, 1}, DType::u8), {1, 1 << 16},
                             ResizeFilter::bilinear),
               Error);
}

}  // namespace
}  // namespace heddle::data
