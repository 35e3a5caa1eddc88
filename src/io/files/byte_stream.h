// A file from its beginning to its end, plain or gzip, in memory of a fixed size: for texts that
// are larger than memory. What gzip files may be is said in gzip.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace heddle::io {

class ByteStream {
 public:
  explicit ByteStream(const std::string& path);  // Error where it cannot be opened
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fewer than `bytes` only at the end.
  std::size_t read(char* out, std::size_t bytes);
  // Goes forward as if so many bytes were read; fewer only at the end.
  std::uint64_t skip(std::uint64_t bytes);

  bool is_packed() const noexcept;
  std::uint64_t file_bytes() const noexcept;  // on the disk

 private:
  class Source;
  class Plain;
  class Packed;
  std::unique_ptr<Source> source_;
};

}  // namespace heddle::io
