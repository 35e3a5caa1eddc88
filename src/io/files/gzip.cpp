#include "io/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/memory_error.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/file.h"
#include "io/files/memory_limit.h"

namespace heddle::io {
namespace {

constexpr std::size_t kPerInflate = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits

// Goes through a file once: the first time to count, into a window that is thrown away, the second
// time into memory of just that size. A file that is too large is found before it takes any.
class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& where, std::size_t max_bytes,
           const std::string& limit_text)
      : bytes_(bytes), where_(where), max_bytes_(max_bytes), limit_text_(limit_text) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK)
      fail(ErrorCode::out_of_memory, where_, "zlib cannot get its memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t count() {
    constexpr std::size_t kWindow = std::size_t{1} << 18;
    std::string window(kWindow, '\0');
    run(window.data(), window.size());
    return produced_;
  }

  // As many bytes as count() has counted.
  void into(std::string& out) { run(out.data(), out.size()); }

 private:
  // The room is used again and again where it is smaller than what comes out.
  void run(char* room, std::size_t bytes) {
    room_ = room;
    room_bytes_ = bytes;
    do {
      member();
    } while (another_member());
  }

  void member() {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (filled_ == room_bytes_ && room_bytes_ > 0) filled_ = 0;
      status = step();
      if (produced_ > max_bytes_)
        fail_io(where_, "is too large once unpacked", "at most " + limit_text_, "more");
      if (status == Z_OK || status == Z_STREAM_END) continue;
      if (status == Z_BUF_ERROR)  // there is room, always: it wants more input
        fail_io(where_, "ends inside of its compressed data, at offset " + std::to_string(at_));
      if (status == Z_MEM_ERROR) fail(ErrorCode::out_of_memory, where_, "zlib has no memory");
      fail_io(where_, "is damaged at offset " + std::to_string(at_), "gzip data",
              stream_.msg != nullptr ? stream_.msg : "status " + std::to_string(status));
    }
  }

  // Calls zlib with what is left of input and room.
  int step() {
    const auto in = static_cast<uInt>(std::min(bytes_.size() - at_, kPerInflate));
    const auto room = static_cast<uInt>(std::min(room_bytes_ - filled_, kPerInflate));
    // zlib does not write to its input; its interface is older than const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + at_));
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(room_ + filled_);
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    at_ += in - stream_.avail_in;
    filled_ += room - stream_.avail_out;
    produced_ += room - stream_.avail_out;
    return status;
  }

  bool another_member() {
    if (bytes_.find_first_not_of('\0', at_) == std::string_view::npos) return false;
    if (!is_gzip(bytes_.substr(at_)))
      fail_io(where_, "has other bytes after its compressed data, at offset " + std::to_string(at_),
              "the end, zeros or another gzip member", shown(bytes_.substr(at_, 16)));
    inflateReset(&stream_);
    return true;
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t max_bytes_;
  const std::string& limit_text_;
  z_stream stream_{};
  std::size_t at_ = 0;  // in bytes_
  char* room_ = nullptr;
  std::size_t room_bytes_ = 0;
  std::size_t filled_ = 0;    // of the room
  std::size_t produced_ = 0;  // in all
};

}  // namespace

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, const std::string& where, std::size_t max_bytes) {
  const bool by_memory = max_bytes > file_limit();
  const std::string text = by_memory ? file_limit_text() : std::to_string(max_bytes) + " bytes";
  const std::size_t most = std::min(max_bytes, file_limit());
  return with_stage("unpacking " + where, [&] {
    // One byte more than there will be: zlib wants room to see that the end is one.
    std::string out(Inflater(bytes, where, most, text).count() + 1, '\0');
    Inflater(bytes, where, most, text).into(out);
    out.pop_back();
    return out;
  });
}

std::string read_maybe_gzip(const std::string& path, std::size_t max_bytes) {
  std::string bytes = read_file(path, max_bytes);
  return is_gzip(bytes) ? gunzip(bytes, path, max_bytes) : bytes;
}

}  // namespace heddle::io
