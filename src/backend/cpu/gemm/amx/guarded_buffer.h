// Test memory: the last byte is followed by a page that faults, the bytes before are watched.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/divide.h"

namespace heddle::cpu::amx {

class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = ceil_div(bytes + kCanary, page);
    mapped_ = (pages + 1) * page;
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + pages * page, page, PROT_NONE) != 0) std::abort();
    data_ = base_ + pages * page - bytes;
    std::memset(base_, kPattern, static_cast<std::size_t>(data_ - base_));
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(base_, mapped_); }

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

  // Nothing was written before the first byte.
  bool intact() const {
    for (const unsigned char* p = base_; p < data_; ++p)
      if (*p != kPattern) return false;
    return true;
  }

 private:
  static constexpr std::size_t kCanary = 256;
  static constexpr unsigned char kPattern = 0xa5;
  std::size_t bytes_, mapped_ = 0;
  unsigned char* base_ = nullptr;
  unsigned char* data_ = nullptr;
};

}  // namespace heddle::cpu::amx
