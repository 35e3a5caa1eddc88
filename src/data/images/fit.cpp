#include "data/images/fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::data {
namespace {

std::string fit_text(const ImageSize& s) {
  return std::to_string(s.height) + " × " + std::to_string(s.width) + " pixels";
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// How far a filter reaches, in pixels of the smaller image.
double support_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::lanczos: return 3;
    case ResizeFilter::bicubic: return 2;
    case ResizeFilter::box: return 0.5;
    case ResizeFilter::bilinear:
    case ResizeFilter::hamming: break;
  }
  return 1;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double weight_of(ResizeFilter filter, double x) {
  const double far = std::abs(x);
  switch (filter) {
    case ResizeFilter::lanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    case ResizeFilter::bicubic: return bicubic(far);
    case ResizeFilter::box: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ResizeFilter::hamming:
      return far < 1 ? sinc(far) * (0.54 + 0.46 * std::cos(far * std::numbers::pi)) : 0;
    case ResizeFilter::bilinear: break;
  }
  return far < 1 ? 1 - far : 0;
}

// One side's pixels as sums over those of the other image: weights are whole numbers that add up to
// about 2^kBits.
constexpr int kBits = 32 - 8 - 2;
struct Terms {
  std::int64_t begin = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Terms> terms_of(std::int64_t from, std::int64_t to, ResizeFilter filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretched = std::max(scale, 1.0), reach = support_of(filter) * stretched;
  std::vector<Terms> all(static_cast<std::size_t>(to));
  std::vector<double> weights;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto nearest = [](double x) { return static_cast<std::int64_t>(std::floor(x + 0.5)); };
    const auto begin = std::max<std::int64_t>(nearest(center - reach), 0);
    const auto end = std::min(nearest(center + reach), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t at = begin; at < end; ++at) {
      weights.push_back(
          weight_of(filter, (static_cast<double>(at) - center + 0.5) * (1 / stretched)));
      sum += weights.back();
    }
    all[i].begin = begin;
    for (const double weight : weights) {
      const double share = (sum == 0 ? weight : weight / sum) * (1 << kBits);
      all[i].weights.push_back(static_cast<std::int32_t>(share < 0 ? share - 0.5 : share + 0.5));
    }
  }
  return all;
}

// Where the numbers of one side lie: `lines` of them, each with steps of `step` from place to
// place.
struct Lines {
  std::int64_t lines = 0, next_line = 0, step = 0;
};

void add_up(const std::vector<Terms>& terms, const Lines& in, const Lines& out,
            const std::uint8_t* from, std::uint8_t* to) {
  for (std::int64_t line = 0; line < in.lines; ++line)
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const std::uint8_t* pixel = from + line * in.next_line + terms[i].begin * in.step;
      std::int64_t sum = std::int64_t{1} << (kBits - 1);
      for (const std::int32_t weight : terms[i].weights) {
        sum += std::int64_t{*pixel} * weight;
        pixel += in.step;
      }
      to[line * out.next_line + static_cast<std::int64_t>(i) * out.step] =
          static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kBits, 0, 255));
    }
}

void check_pixels(const ImageSize& size, const ImageSize& image) {
  if (size.height > 0 && size.width > 0 && size.height <= kMostPixels / size.width) return;
  fail(ErrorCode::out_of_range, "image", "resized from " + fit_text(image),
       "1 to " + std::to_string(kMostPixels) + " pixels", fit_text(size));
}

}  // namespace

ImageSize resized_size(const ImageFit& fit, const ImageSize& image) {
  ImageSize size = image;
  if (fit.size) size = *fit.size;
  if (!fit.size && fit.shorter > 0) {
    const bool tall = image.width <= image.height;
    const std::int64_t shortest = std::min(image.height, image.width);
    const std::int64_t longest = std::max(image.height, image.width);
    if (shortest < 1 || longest > kMostPixels / fit.shorter) check_pixels({0, 0}, image);
    const std::int64_t other = fit.shorter * longest / shortest;
    size = tall ? ImageSize{other, fit.shorter} : ImageSize{fit.shorter, other};
  }
  check_pixels(size, image);
  return size;
}

ImageSize fitted_size(const ImageFit& fit, const ImageSize& image) {
  const ImageSize size = resized_size(fit, image);
  if (!fit.middle) return size;
  if (size.height < fit.middle->height || size.width < fit.middle->width)
    fail(ErrorCode::out_of_range, "image", "what is taken of its middle",
         "at least " + fit_text(*fit.middle), fit_text(size));
  return *fit.middle;
}

Tensor resized(const Tensor& image, const ImageSize& size, ResizeFilter filter) {
  const std::int64_t channels = image.size(0), height = image.size(1), width = image.size(2);
  constexpr std::int64_t kMostBytes =
      4 * kMostPixels;  // of all channels, also between the two ways
  check_pixels(size, {height, width});
  if (channels > kMostBytes / (size.width * std::max(size.height, height)))
    fail(ErrorCode::out_of_range, "image", "resized to " + fit_text(size),
         "at most " + std::to_string(kMostBytes) + " bytes at any time",
         std::to_string(channels) + " channels of " + fit_text({height, width}));
  const auto wider = [&](const Tensor& from) {
    const std::int64_t rows = channels * from.size(1);
    Tensor to = Tensor::empty({channels, from.size(1), size.width}, DType::u8);
    add_up(terms_of(width, size.width, filter), {rows, width, 1}, {rows, size.width, 1},
           from.data<std::uint8_t>(), to.mutable_data<std::uint8_t>());
    return to;
  };
  const auto taller = [&](const Tensor& from) {
    const std::int64_t columns = from.size(2);
    const Lines lines{columns, 1, columns};
    Tensor to = Tensor::empty({channels, size.height, columns}, DType::u8);
    const std::vector<Terms> terms = terms_of(height, size.height, filter);
    for (std::int64_t c = 0; c < channels; ++c)
      add_up(terms, lines, lines, from.data<std::uint8_t>() + c * height * columns,
             to.mutable_data<std::uint8_t>() + c * size.height * columns);
    return to;
  };
  Tensor now = ops::contiguous(image);
  // As that library does (13.0): what keeps the image between the two ways small.
  const bool columns_first = size.height < height && size.width > width;
  if (columns_first) now = taller(now);
  if (size.width != width) now = wider(now);
  if (size.height != height && !columns_first) now = taller(now);
  return now;
}

Tensor fitted(const ImageFit& fit, const Tensor& image) {
  const ImageSize before{image.size(1), image.size(2)};
  const ImageSize after = fitted_size(fit, before), whole = resized_size(fit, before);
  Tensor now = image;
  if (whole != before) now = resized(now, whole, fit.filter);
  if (after == whole) return now;
  const std::int64_t top = (whole.height - after.height) / 2;
  const std::int64_t left = (whole.width - after.width) / 2;
  now = ops::slice(now, 1, top, top + after.height);
  return ops::contiguous(ops::slice(now, 2, left, left + after.width));
}

}  // namespace heddle::data
