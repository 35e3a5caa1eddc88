#include <cstdio>  // jpeglib.h needs it and does not include it

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <cstring>

#include "io/errors.h"
#include "io/images/image_formats.h"

namespace heddle::io {
namespace {

// Each scan of a progressive file goes over the whole image: a small file with thousands of them
// would keep us busy for hours. Real ones have about ten.
constexpr int kMaxScans = 200;

struct JpegReader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
  std::string_view bytes;
  JSAMPROW row = nullptr;  // where the first row goes
  std::size_t row_bytes = 0;

  explicit JpegReader(std::string_view all) : bytes(all) {}
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  std::size_t offset() const {
    return info.src == nullptr ? 0 : bytes.size() - info.src->bytes_in_buffer;
  }
  [[noreturn]] void refuse(const std::string& where) const {
    fail_io(where, "cannot be read as JPEG, at offset " + std::to_string(offset()), {}, message);
  }
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* r = static_cast<JpegReader*>(info->client_data);
  (*info->err->format_message)(info, r->message);
  std::longjmp(r->jump, 1);
}

// Level -1 are warnings: damage that the decoder would paint over. These few are harmless.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR) return;
  leave(info);
}

void on_progress(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMaxScans) return;
  auto* r = static_cast<JpegReader*>(info->client_data);
  std::strcpy(r->message, "too many scans");
  std::longjmp(r->jump, 1);
}

// False: an error has landed.
bool read_header(JpegReader& r) {
  r.info.err = jpeg_std_error(&r.errors);
  r.errors.error_exit = leave;
  r.errors.emit_message = on_message;
  r.errors.output_message = [](j_common_ptr) {};
  r.info.client_data = &r;
  if (setjmp(r.jump) != 0) return false;
  jpeg_create_decompress(&r.info);  // keeps err and client_data
  r.progress.progress_monitor = on_progress;
  r.info.progress = &r.progress;
  jpeg_mem_src(&r.info, reinterpret_cast<const unsigned char*>(r.bytes.data()), r.bytes.size());
  jpeg_read_header(&r.info, TRUE);
  return true;
}

bool start(JpegReader& r) {
  if (setjmp(r.jump) != 0) return false;
  jpeg_start_decompress(&r.info);
  return true;
}

bool read_rows(JpegReader& r) {
  if (setjmp(r.jump) != 0) return false;
  while (r.info.output_scanline < r.info.output_height) {
    JSAMPROW row = r.row + r.info.output_scanline * r.row_bytes;
    jpeg_read_scanlines(&r.info, &row, 1);
  }
  jpeg_finish_decompress(&r.info);
  return true;
}

void choose_colours(JpegReader& r, const std::string& where) {
  switch (r.info.jpeg_color_space) {
    case JCS_GRAYSCALE: r.info.out_color_space = JCS_GRAYSCALE; return;
    case JCS_YCbCr:
    case JCS_RGB: r.info.out_color_space = JCS_RGB; return;
    default:
      fail_io(where, "has colours that Heddle does not read", "grey, YCbCr or RGB",
              std::to_string(r.info.num_components) + " components, as of CMYK");
  }
}

}  // namespace

Pixels decode_jpeg(std::string_view bytes, const std::string& where, const ImageLimits& limits) {
  JpegReader r(bytes);
  if (!read_header(r)) r.refuse(where);
  check_image_size(r.info.image_width, r.info.image_height, where, limits);
  choose_colours(r, where);
  if (!start(r)) r.refuse(where);
  Pixels pixels;
  pixels.width = r.info.output_width;
  pixels.height = r.info.output_height;
  pixels.channels = static_cast<std::size_t>(r.info.output_components);
  if (pixels.channels != 1 && pixels.channels != 3)
    fail_io(where, "number of colours", "1 or 3", std::to_string(pixels.channels));
  r.row_bytes = pixels.width * pixels.channels;
  pixels.values.resize(r.row_bytes * pixels.height);
  r.row = pixels.values.data();
  if (!read_rows(r)) r.refuse(where);
  return pixels;
}

}  // namespace heddle::io
