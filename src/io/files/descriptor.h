// Owner of a file descriptor, and system calls on it that are complete or an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace heddle::io {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  int close() noexcept;  // 0, or the errno

 private:
  int fd_ = -1;
};

// Throws Error naming `path` when it cannot be opened.
Descriptor open_file(const std::string& path, int flags, unsigned mode = 0666);

// Every reader of files opens them with this: a regular file, or an Error that says what is there
// instead. A pipe would block until a process writes to it, and a device gives bytes without end;
// neither is opened.
Descriptor open_regular(const std::string& path, int flags, unsigned mode = 0666);
std::uint64_t length_of(const Descriptor& file, const std::string& path);  // in bytes

// Up to `bytes`, fewer only at the end of the file; at the descriptor's position.
std::size_t read_some(const Descriptor& file, const std::string& path, void* data,
                      std::size_t bytes);
// The same at an offset, which the descriptor's position does not follow.
std::size_t read_at(const Descriptor& file, const std::string& path, void* data, std::size_t bytes,
                    std::uint64_t offset);
void write_all(const Descriptor& file, const std::string& path, const void* data,
               std::size_t bytes);

}  // namespace heddle::io
