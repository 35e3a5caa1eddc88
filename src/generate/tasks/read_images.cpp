#include <cstddef>
#include <string_view>

#include "heddle/error.h"
#include "heddle/images.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/files/gzip.h"
#include "io/images/idx.h"
#include "io/images/image.h"

namespace heddle {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{2} << 30;

bool is_picture(std::string_view bytes) {
  return bytes.starts_with("\x89PNG") || bytes.starts_with("\xFF\xD8\xFF");
}

}  // namespace

std::vector<NamedImage> read_images(const std::string& path) {
  constexpr const char* kImages = "an image (PNG or JPEG) or a file of images (IDX)";
  if (!io::file_exists(path)) fail(ErrorCode::io, path, "there is no such file", kImages);
  {
    const std::string bytes = io::read_file(path, kMaxBytes);
    if (is_picture(bytes)) return {{path, io::decode_image(bytes, path)}};
    const bool packed = io::is_gzip(bytes);
    if (!packed && !bytes.starts_with(std::string_view("\0\0", 2)))
      fail(ErrorCode::io, path, "is no image that Heddle reads", kImages,
           io::shown(std::string_view(bytes).substr(0, 4)));
  }
  const Tensor all = io::read_idx(path, kMaxBytes);
  if (all.rank() != 3)
    fail(ErrorCode::io, path, "sizes of the IDX file", "images, height, width", all.describe());
  std::vector<NamedImage> images;
  images.reserve(static_cast<std::size_t>(all.size(0)));
  for (std::int64_t i = 0; i < all.size(0); ++i)
    images.push_back({path + "[" + std::to_string(i) + "]", views::slice(all, 0, i, i + 1)});
  return images;
}

}  // namespace heddle
