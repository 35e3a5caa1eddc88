#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "heddle/error.h"
#include "heddle/ops/copy.h"
#include "io/errors.h"
#include "io/images/image_formats.h"

namespace heddle::io {
namespace {

// Where libpng's errors land.
struct Landing {
  std::jmp_buf jump;
  char message[256] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* landing = static_cast<Landing*>(png_get_error_ptr(png));
  std::strncpy(landing->message, message, sizeof landing->message - 1);
  std::longjmp(landing->jump, 1);
}

void on_warning(png_structp, png_const_charp) {}  // says nothing: libraries do not print

struct PngReader {
  std::string_view bytes;
  std::size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  Landing landing;
  std::vector<png_bytep> rows;

  PngReader(std::string_view all, const ImageLimits& limits) : bytes(all) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &landing, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, &info, nullptr);
      fail(ErrorCode::out_of_memory, "decode_png", "libpng cannot get its memory");
    }
    png_set_read_fn(png, this, [](png_structp p, png_bytep to, std::size_t wanted) {
      auto* self = static_cast<PngReader*>(png_get_io_ptr(p));
      if (wanted > self->bytes.size() - self->at) png_error(p, "the file ends too early");
      std::memcpy(to, self->bytes.data() + self->at, wanted);
      self->at += wanted;
    });
    const auto side = static_cast<png_uint_32>(std::min<std::int64_t>(limits.max_side, 0x7fffffff));
    png_set_user_limits(png, side, side);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  [[noreturn]] void refuse(const std::string& where) const {
    fail_io(where, "cannot be read as PNG, at offset " + std::to_string(at), {}, landing.message);
  }
};

// Header, and from there on 8 bits a channel. False: an error has landed.
bool read_header(PngReader& r) {
  if (setjmp(r.landing.jump) != 0) return false;
  png_read_info(r.png, r.info);
  return true;
}

bool ask_for_eight_bits(PngReader& r) {
  if (setjmp(r.landing.jump) != 0) return false;
  png_set_expand(r.png);    // palettes, 1, 2 and 4 bits, a transparent colour
  png_set_scale_16(r.png);  // rounds, where strip_16 would cut
  png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool read_rows(PngReader& r) {
  if (setjmp(r.landing.jump) != 0) return false;
  png_read_image(r.png, r.rows.data());
  png_read_end(r.png, nullptr);
  return true;
}

// Deflate packs 1032 bytes into one at most: a small file cannot make us take much memory.
void check_plausible(const PngReader& r, std::size_t packed_bytes, const std::string& where) {
  if (packed_bytes / 1032 > r.bytes.size())
    fail_io(where, "is too short for its size", "at least " + std::to_string(packed_bytes / 1032),
            std::to_string(r.bytes.size()) + " bytes");
}

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Landing landing;
  std::string out;
  std::vector<std::uint8_t> pixels;  // [H, W, C]
  png_uint_32 width = 0, height = 0;
  std::size_t channels = 0;

  Writer() {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &landing, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_write_struct(&png, &info);
      fail(ErrorCode::out_of_memory, "encode_png", "libpng cannot get its memory");
    }
  }
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};

void append(png_structp png, png_bytep from, std::size_t bytes) {
  auto* writer = static_cast<Writer*>(png_get_io_ptr(png));
  try {
    writer->out.append(reinterpret_cast<const char*>(from), bytes);
    return;
  } catch (const std::exception&) {  // must not travel through libpng's frames
  }
  png_error(png, "out of memory");
}

bool write_all_rows(Writer& w) {
  if (setjmp(w.landing.jump) != 0) return false;
  png_set_write_fn(w.png, &w, append, [](png_structp) {});
  png_set_IHDR(w.png, w.info, w.width, w.height, 8,
               w.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  for (png_uint_32 y = 0; y < w.height; ++y)
    png_write_row(w.png, w.pixels.data() + y * w.width * w.channels);
  png_write_end(w.png, nullptr);
  return true;
}

}  // namespace

Pixels decode_png(std::string_view bytes, const std::string& where, const ImageLimits& limits) {
  PngReader r(bytes, limits);
  if (!read_header(r)) r.refuse(where);
  Pixels pixels;
  pixels.width = png_get_image_width(r.png, r.info);
  pixels.height = png_get_image_height(r.png, r.info);
  check_image_size(pixels.width, pixels.height, where, limits);
  check_plausible(r, png_get_rowbytes(r.png, r.info) * pixels.height, where);
  if (!ask_for_eight_bits(r)) r.refuse(where);
  pixels.channels = png_get_channels(r.png, r.info);
  const std::size_t row = pixels.width * pixels.channels;
  if (png_get_rowbytes(r.png, r.info) != row || pixels.channels < 1 || pixels.channels > 4)
    fail_io(where, "has rows of a size that does not follow from its header");
  pixels.values.resize(row * pixels.height);
  for (std::size_t y = 0; y < pixels.height; ++y) r.rows.push_back(pixels.values.data() + y * row);
  if (!read_rows(r)) r.refuse(where);
  return pixels;
}

std::string encode_png(const Tensor& image) {
  const auto expect = [&](bool ok) {
    if (!ok)
      fail(ErrorCode::invalid_argument, "encode_png", "image",
           "u8 [C, H, W] with C = 1 or 3 and sides of 1 to 1000000", image.describe());
  };
  expect(image.defined() && image.dtype() == DType::u8 && image.rank() == 3);
  expect(image.size(0) == 1 || image.size(0) == 3);
  for (const int dim : {1, 2}) expect(image.size(dim) >= 1 && image.size(dim) <= 1'000'000);
  Writer w;
  w.channels = static_cast<std::size_t>(image.size(0));
  w.height = static_cast<png_uint_32>(image.size(1));
  w.width = static_cast<png_uint_32>(image.size(2));
  w.pixels = views::permute(image, std::vector<int>{1, 2, 0}).to_vector<std::uint8_t>();
  if (!write_all_rows(w)) fail_io("encode_png", "libpng failed", {}, w.landing.message);
  return std::move(w.out);
}

}  // namespace heddle::io
