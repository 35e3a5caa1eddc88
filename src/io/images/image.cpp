#include "io/images/image.h"

#include "base/memory_error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/images/image_formats.h"

namespace heddle::io {
namespace {

// Interleaved pixels to planes; transparent ones are blended with a white background.
Tensor planes_of(const Pixels& pixels) {
  const bool alpha = pixels.channels % 2 == 0;
  const std::size_t channels = pixels.channels - (alpha ? 1 : 0);
  const std::size_t plane = pixels.width * pixels.height;
  Tensor out =
      Tensor::empty({static_cast<std::int64_t>(channels), static_cast<std::int64_t>(pixels.height),
                     static_cast<std::int64_t>(pixels.width)},
                    DType::u8);  // [C, H, W]
  auto* to = out.mutable_data<std::uint8_t>();
  for (std::size_t i = 0; i < plane; ++i) {
    const std::uint8_t* from = pixels.values.data() + i * pixels.channels;
    const unsigned cover = alpha ? from[channels] : 255;
    for (std::size_t c = 0; c < channels; ++c)
      to[c * plane + i] =
          static_cast<std::uint8_t>((from[c] * cover + 255 * (255 - cover) + 127) / 255);
  }
  return out;
}

}  // namespace

void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& where,
                      const ImageLimits& limits) {
  const auto side = static_cast<std::uint64_t>(limits.max_side);
  const auto area = static_cast<std::uint64_t>(limits.max_pixels);
  if (width == 0 || height == 0 || width > side || height > side || width * height > area)
    fail_io(where, "size of the image",
            "1 to " + std::to_string(side) + " pixels a side, at most " + std::to_string(area) +
                " in all",
            std::to_string(width) + " x " + std::to_string(height));
}

Tensor decode_image(std::string_view bytes, const std::string& where, const ImageLimits& limits) {
  if (bytes.starts_with("\x89PNG")) return planes_of(decode_png(bytes, where, limits));
  if (bytes.starts_with("\xff\xd8")) return planes_of(decode_jpeg(bytes, where, limits));
  fail_io(where, "is no image that Heddle reads: offset 0", "the first bytes of a PNG or JPEG",
          shown(bytes.substr(0, 8)));
}

Tensor read_image(const std::string& path, const ImageLimits& limits) {
  const std::string bytes = read_file(path, limits.max_bytes);
  return with_stage("unpacking " + path, [&] { return decode_image(bytes, path, limits); });
}

void write_png(const std::string& path, const Tensor& image) {
  write_file_atomic(path, encode_png(image));
}

}  // namespace heddle::io
