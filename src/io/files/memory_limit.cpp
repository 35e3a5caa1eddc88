#include "io/files/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/process_memory.h"

namespace heddle::io {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur;
}

std::atomic<std::uint64_t> pretended{kNoLimit};

}  // namespace

PretendMemory::PretendMemory(std::uint64_t bytes) { pretended = bytes; }
PretendMemory::~PretendMemory() { pretended = kNoLimit; }

// Groups and the machine stay as they are; ulimits are asked for anew because tests change them.
std::uint64_t process_memory() {
  static const auto surroundings = static_cast<std::uint64_t>(surrounding_memory());
  return std::min({surroundings, limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA), pretended.load()});
}

std::size_t file_limit() {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(process_memory() / 4, std::string().max_size() / 4));
}

std::string file_limit_text() {
  return std::to_string(file_limit()) + " bytes, a quarter of the memory that this process may use";
}

std::size_t item_limit(std::size_t bytes_each) { return file_limit() / bytes_each; }

}  // namespace heddle::io
