// XXH64: a hash of 64 bits that reads memory as fast as it comes. Tells contents apart, for files
// of many gigabytes, where CRC-32 would be both slow and short; no defence against people who want
// two contents to be alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::io {

class Xxh64 {
 public:
  explicit Xxh64(std::uint64_t seed = 0) noexcept;

  void add(const void* data, std::size_t bytes) noexcept;
  void add(std::string_view text) noexcept { add(text.data(), text.size()); }
  // A text after which another may follow: "ab" and "c" are not "a" and "bc".
  void add_field(std::string_view text) noexcept;
  void add_number(std::uint64_t number) noexcept;

  std::uint64_t value() const noexcept;  // of what was added so far

 private:
  void take_stripe(const unsigned char* stripe) noexcept;

  std::uint64_t seed_;
  std::array<std::uint64_t, 4> lanes_;
  std::array<unsigned char, 32> rest_{};  // a stripe that is not whole yet
  std::size_t in_rest_ = 0;
  std::uint64_t total_ = 0;
};

std::uint64_t xxh64(std::string_view bytes) noexcept;

std::string hex_text(std::uint64_t number);  // sixteen hexadecimal digits

}  // namespace heddle::io
