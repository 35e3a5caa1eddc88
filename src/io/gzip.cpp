#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/file.h"

namespace heddle::io {
namespace {

constexpr std::size_t kPerInflate = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits

class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& where, std::size_t max_bytes)
      : bytes_(bytes), where_(where), max_bytes_(max_bytes) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK)
      fail(ErrorCode::out_of_memory, where_, "zlib cannot get its memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string run() {
    do {
      member();
    } while (another_member());
    out_.resize(filled_);
    return std::move(out_);
  }

 private:
  void member() {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (filled_ == out_.size()) grow();
      status = step();
      if (filled_ > max_bytes_)
        fail_io(where_, "is too large once unpacked",
                "at most " + std::to_string(max_bytes_) + " bytes", "more");
      if (status == Z_OK || status == Z_STREAM_END) continue;
      if (status == Z_BUF_ERROR && at_ < bytes_.size()) continue;  // wants more room
      if (status == Z_BUF_ERROR)
        fail_io(where_, "ends inside of its compressed data, at offset " + std::to_string(at_));
      if (status == Z_MEM_ERROR) fail(ErrorCode::out_of_memory, where_, "zlib has no memory");
      fail_io(where_, "is damaged at offset " + std::to_string(at_), "gzip data",
              stream_.msg != nullptr ? stream_.msg : "status " + std::to_string(status));
    }
  }

  // Calls zlib with what is left of input and room.
  int step() {
    const auto in = static_cast<uInt>(std::min(bytes_.size() - at_, kPerInflate));
    const auto room = static_cast<uInt>(std::min(out_.size() - filled_, kPerInflate));
    // zlib does not write to its input; its interface is older than const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + at_));
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + filled_);
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    at_ += in - stream_.avail_in;
    filled_ += room - stream_.avail_out;
    return status;
  }

  // One byte beyond the limit, to see that it is passed.
  void grow() {
    constexpr std::size_t kFirst = std::size_t{1} << 16;
    out_.resize(std::min(std::max(kFirst, 2 * out_.size()), max_bytes_ + 1));
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
  z_stream stream_{};
  std::size_t at_ = 0;  // in bytes_
  std::string out_;
  std::size_t filled_ = 0;  // of out_
};

}  // namespace

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, const std::string& where, std::size_t max_bytes) {
  // A quarter of what can be addressed: sums do not overflow.
  return Inflater(bytes, where, std::min(max_bytes, std::string().max_size() / 4)).run();
}

std::string read_maybe_gzip(const std::string& path, std::size_t max_bytes) {
  std::string bytes = read_file(path, max_bytes);
  return is_gzip(bytes) ? gunzip(bytes, path, max_bytes) : bytes;
}

}  // namespace heddle::io
