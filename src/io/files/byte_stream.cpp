#include "io/files/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/descriptor.h"
#include "io/files/gzip.h"

namespace heddle::io {

namespace {

constexpr std::size_t kPackedWindow = std::size_t{1} << 18;
constexpr std::size_t kSkipped = std::size_t{1} << 16;

}  // namespace

class ByteStream::Source {
 public:
  Source(Descriptor file, std::string path, std::uint64_t length)
      : file_(std::move(file)), path_(std::move(path)), length_(length) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  virtual std::size_t read(char* out, std::size_t bytes) = 0;
  virtual std::uint64_t skip(std::uint64_t bytes) = 0;
  virtual bool is_packed() const noexcept = 0;
  std::uint64_t length() const noexcept { return length_; }

 protected:
  const Descriptor& file() const noexcept { return file_; }
  const std::string& path() const noexcept { return path_; }

 private:
  Descriptor file_;
  std::string path_;
  std::uint64_t length_;
};

class ByteStream::Plain final : public Source {
 public:
  using Source::Source;

  std::size_t read(char* out, std::size_t bytes) override {
    const std::size_t got = read_at(file(), path(), out, bytes, at_);
    at_ += got;
    return got;
  }
  std::uint64_t skip(std::uint64_t bytes) override {
    const std::uint64_t gone = std::min(bytes, length() - std::min(at_, length()));
    at_ += gone;
    return gone;
  }
  bool is_packed() const noexcept override { return false; }

 private:
  std::uint64_t at_ = 0;
};

class ByteStream::Packed final : public Source {
 public:
  Packed(Descriptor file, std::string path, std::uint64_t length)
      : Source(std::move(file), std::move(path), length), window_(kPackedWindow) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK)
      fail(ErrorCode::out_of_memory, this->path(), "zlib cannot get its memory");
  }
  ~Packed() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t bytes) override {
    std::size_t done = 0;
    while (done < bytes && !ended_) {
      const std::size_t most = std::min(bytes - done, kMostAtOnce);
      stream_.next_out = reinterpret_cast<Bytef*>(out + done);
      stream_.avail_out = static_cast<uInt>(most);
      inflate_some();
      done += most - stream_.avail_out;
    }
    return done;
  }
  std::uint64_t skip(std::uint64_t bytes) override {
    std::vector<char> room(kSkipped);
    std::uint64_t gone = 0;
    while (gone < bytes) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - gone, kSkipped));
      const std::size_t got = read(room.data(), wanted);
      gone += got;
      if (got < wanted) break;
    }
    return gone;
  }
  bool is_packed() const noexcept override { return true; }

 private:
  static constexpr std::size_t kMostAtOnce = std::numeric_limits<uInt>::max();  // zlib's counters

  std::uint64_t place() const noexcept { return read_ - stream_.avail_in; }

  void refill() {
    if (stream_.avail_in > 0) return;
    const std::size_t got = read_some(file(), path(), window_.data(), window_.size());
    stream_.next_in = window_.data();
    stream_.avail_in = static_cast<uInt>(got);
    read_ += got;
  }

  void inflate_some() {
    refill();
    const bool no_more = stream_.avail_in == 0;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) return end_member();
    if (status == Z_OK || (status == Z_BUF_ERROR && !no_more)) return;
    if (status == Z_BUF_ERROR)  // there is room, always: it wants more input
      fail_io(path(), "ends inside of its compressed data, at offset " + std::to_string(place()));
    if (status == Z_MEM_ERROR) fail(ErrorCode::out_of_memory, path(), "zlib has no memory");
    fail_io(path(), "is damaged at offset " + std::to_string(place()), "gzip data",
            stream_.msg != nullptr ? stream_.msg : "status " + std::to_string(status));
  }

  // Zeros behind a member are padding, up to the end of the file or to another member.
  void end_member() {
    const std::uint64_t end = place();
    bool padded = false;
    while (true) {
      refill();
      if (stream_.avail_in == 0) {
        ended_ = true;
        return;
      }
      if (*stream_.next_in != 0) break;
      padded = true;
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (padded || !begins_member())
      fail_io(path(), "has other bytes after its compressed data, at offset " + std::to_string(end),
              "the end, zeros or another gzip member");
    inflateReset(&stream_);
  }

  // The mark of gzip may lie across the end of the window.
  bool begins_member() {
    std::array<char, 2> first{};
    const std::size_t here = std::min<std::size_t>(stream_.avail_in, first.size());
    std::copy_n(reinterpret_cast<const char*>(stream_.next_in), here, first.begin());
    if (here < first.size()) read_at(file(), path(), first.data() + here, 1, read_);
    return is_gzip({first.data(), first.size()});
  }

  std::vector<Bytef> window_;
  z_stream stream_{};
  std::uint64_t read_ = 0;  // of the file, into the window
  bool ended_ = false;
};

ByteStream::ByteStream(const std::string& path) {
  Descriptor file = open_regular(path, O_RDONLY);
  const std::uint64_t length = length_of(file, path);
  std::array<char, 2> first{};
  const std::size_t got = read_at(file, path, first.data(), first.size(), 0);
  if (is_gzip({first.data(), got}))
    source_ = std::make_unique<Packed>(std::move(file), path, length);
  else
    source_ = std::make_unique<Plain>(std::move(file), path, length);
}

ByteStream::~ByteStream() = default;

std::size_t ByteStream::read(char* out, std::size_t bytes) { return source_->read(out, bytes); }
std::uint64_t ByteStream::skip(std::uint64_t bytes) { return source_->skip(bytes); }
bool ByteStream::is_packed() const noexcept { return source_->is_packed(); }
std::uint64_t ByteStream::file_bytes() const noexcept { return source_->length(); }

}  // namespace heddle::io
