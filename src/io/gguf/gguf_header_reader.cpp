#include "io/gguf/gguf_header_reader.h"

#include <algorithm>
#include <bit>

#include "io/errors.h"
#include "io/files/memory_limit.h"
#include "io/gguf/gguf_header.h"
#include "io/utf8.h"

namespace heddle::io {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

GgufHeaderReader::GgufHeaderReader(const Descriptor& file, const std::string& path,
                                   std::uint64_t length)
    : file_(file), path_(path), length_(length), memory_left_(file_limit()) {}

void GgufHeaderReader::refuse(std::uint64_t from, std::string_view what, std::string_view expected,
                              std::string_view got) const {
  fail_io(path_, std::string(what) + " at offset " + std::to_string(from), expected, got);
}

void GgufHeaderReader::bytes(void* out, std::size_t size, std::string_view what) {
  if (size > left())
    fail_io(path_,
            "ends inside of " + std::string(what) + " at offset " + std::to_string(at_) +
                ": it is cut short, or damaged",
            std::to_string(size) + " bytes", std::to_string(left()));
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    if (at_ < buffer_at_ || at_ >= buffer_at_ + buffered_) {
      buffer_at_ = at_;
      buffered_ = read_at(file_, path_, buffer_.data(), buffer_.size(), at_);
      if (buffered_ == 0) fail_io(path_, "became shorter while it was read");
    }
    const auto from = static_cast<std::size_t>(at_ - buffer_at_);
    const std::size_t some = std::min(size, buffered_ - from);
    std::memcpy(to, buffer_.data() + from, some);
    to += some;
    at_ += some;
    size -= some;
  }
}

void GgufHeaderReader::take_memory(std::uint64_t bytes, std::string_view what) {
  if (bytes > memory_left_)
    refuse(at_, "the header is too large: " + std::string(what), "at most " + file_limit_text(),
           "more");
  memory_left_ -= bytes;
}

bool GgufHeaderReader::boolean(std::string_view what) {
  const std::uint64_t from = at_;
  const auto value = number<std::uint8_t>(what);
  if (value > 1) refuse(from, what, "0 or 1", std::to_string(value));
  return value == 1;
}

std::string GgufHeaderReader::string(std::string_view what) {
  const std::size_t size = count(what, 1, 1);
  std::string text(size, '\0');
  bytes(text.data(), size, what);
  return text;
}

std::string GgufHeaderReader::name(std::string_view what) {
  const std::uint64_t from = at_;
  std::string text = string(what);
  if (text.empty() || text.size() > kGgufLongestName)
    refuse(from, what, "1 to " + std::to_string(kGgufLongestName) + " bytes",
           std::to_string(text.size()));
  if (first_invalid_utf8(text) != std::string::npos) refuse(from, what, "UTF-8", shown(text));
  return text;
}

std::size_t GgufHeaderReader::count(std::string_view what, std::uint64_t bytes_each,
                                    std::uint64_t memory_each) {
  const std::uint64_t from = at_;
  const auto value = number<std::uint64_t>(what);
  const std::uint64_t most = left() / bytes_each;
  if (value > most)
    refuse(from, "the length of " + std::string(what),
           "at most " + std::to_string(most) + ", for which the file has bytes",
           std::to_string(value));
  // No overflow: fewer than the file has bytes, and memory_each is small.
  take_memory(value * memory_each, what);
  return static_cast<std::size_t>(value);
}

}  // namespace heddle::io
