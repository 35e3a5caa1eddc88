#include "io/files/mapping.h"

#include <sys/mman.h>

#include <cerrno>
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

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void check_length(const Descriptor& file, const std::string& path, std::uint64_t length) {
  const std::uint64_t now = length_of(file, path);
  if (now < length)
    fail_io(path, "became shorter while it was read", std::to_string(length) + " bytes",
            std::to_string(now));
}

}  // namespace heddle::io
