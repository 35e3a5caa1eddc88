// A GGUF header, read front to back in small pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "io/files/descriptor.h"

namespace heddle::io {

class GgufHeaderReader {
 public:
  GgufHeaderReader(const Descriptor& file, const std::string& path, std::uint64_t length);

  const std::string& path() const noexcept { return path_; }
  std::uint64_t at() const noexcept { return at_; }
  std::uint64_t left() const noexcept { return length_ - at_; }

  // `what` is what errors call it: "the value of key "a.b"".
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  T number(std::string_view what) {
    T value{};
    bytes(&value, sizeof value, what);  // little-endian, as this machine is
    return value;
  }
  bool boolean(std::string_view what);  // a byte that is 0 or 1
  std::string string(std::string_view what);
  // Of a key or a tensor: not empty, not long, UTF-8.
  std::string name(std::string_view what);
  // How many of something follow, each of at least `bytes_each` in the file and of about
  // `memory_each` in memory, which is refused where it is too much.
  std::size_t count(std::string_view what, std::uint64_t bytes_each, std::uint64_t memory_each);
  void bytes(void* out, std::size_t size, std::string_view what);

  // Refuses what was read last; `from` is where it began.
  [[noreturn]] void refuse(std::uint64_t from, std::string_view what, std::string_view expected,
                           std::string_view got) const;

 private:
  void take_memory(std::uint64_t bytes, std::string_view what);

  const Descriptor& file_;
  const std::string& path_;
  std::uint64_t length_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t memory_left_ = 0;
  std::array<char, 1 << 16> buffer_{};
  std::uint64_t buffer_at_ = 0;  // its place in the file
  std::size_t buffered_ = 0;
};

}  // namespace heddle::io
