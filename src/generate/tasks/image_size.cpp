#include "generate/tasks/image_size.h"

#include <cstdint>
#include <string>

#include "heddle/error.h"

namespace heddle::generate {

namespace {

std::string size_text(std::int64_t width, std::int64_t height, std::int64_t channels) {
  return std::to_string(width) + " × " + std::to_string(height) + " pixels with " +
         std::to_string(channels) + (channels == 1 ? " channel" : " channels");
}

data::ImageSize fitted_size_of(const NamedImage& image, const data::ImageFit& fit,
                               const data::ImageSize& size) {
  try {
    return data::fitted_size(fit, size);
  } catch (const Error& e) {
    fail(e.code(), image.name, e.problem(), e.expected(), e.got());
  }
}

}  // namespace

void check_size(const NamedImage& image, const data::ImageFacts& learned) {
  const Tensor& p = image.pixels;
  data::ImageSize size{p.size(1), p.size(2)};
  if (learned.fit) size = fitted_size_of(image, *learned.fit, size);
  if (size.height == learned.height && size.width == learned.width &&
      (p.size(0) == learned.channels || p.size(0) == 1))
    return;
  fail(ErrorCode::shape_mismatch, image.name, "size of the image",
       size_text(learned.width, learned.height, learned.channels) + ", as the model has learned",
       size_text(size.width, size.height, p.size(0)));
}

}  // namespace heddle::generate
