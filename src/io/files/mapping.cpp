#include "io/files/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include "io/errors.h"

namespace heddle::io {

Mapping::Mapping(const Descriptor& file, const std::string& path, std::uint64_t length) {
  if (length == 0) return;  // which mmap() would refuse
  if (length > std::numeric_limits<std::size_t>::max() / 2)
    fail_io(path, "is too large to be mapped into memory", {}, std::to_string(length) + " bytes");
  const auto size = static_cast<std::size_t>(length);
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (pages == MAP_FAILED) fail_system(path, "cannot map it into memory", errno);
  bytes_ = {static_cast<const std::uint8_t*>(pages), size};
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

// Whole pages only: the first and the last one may have neighbours of interest.
void Mapping::forget(std::span<const std::uint8_t> part) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = reinterpret_cast<std::uintptr_t>(part.data()) % page;
  const std::size_t before = begin == 0 ? 0 : page - begin;
  if (part.size() < before + page) return;
  ::madvise(const_cast<std::uint8_t*>(part.data()) + before, (part.size() - before) / page * page,
            MADV_DONTNEED);
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void check_length(const Descriptor& file, const std::string& path, std::uint64_t length) {
  const std::uint64_t now = length_of(file, path);
  if (now < length)
    fail_io(path, "became shorter while it was read", std::to_string(length) + " bytes",
            std::to_string(now));
}

}  // namespace heddle::io
