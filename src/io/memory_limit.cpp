#include "io/memory_limit.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>

#include "heddle/error.h"
#include "io/file.h"

namespace heddle::io {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t memory_of_machine() {
  struct sysinfo info{};
  if (sysinfo(&info) != 0) return kNoLimit;
  return (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
}

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur;
}

// The number in a file of the system; none where it is not there or says "max".
std::uint64_t number_of_file(const std::string& path) {
  try {
    const std::string text = read_whole(path, 4096);
    std::uint64_t value = kNoLimit;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  } catch (const Error&) {
    return kNoLimit;
  }
}

// Of a group and all groups around it. `group` is "/system.slice/x".
std::uint64_t limit_of_groups(const std::string& root, std::string group, const char* file) {
  std::uint64_t limit = kNoLimit;
  while (true) {
    limit = std::min(limit, number_of_file(root + group + "/" + file));
    if (group.empty()) return limit;
    group.erase(std::min(group.rfind('/'), group.size()));
  }
}

// Lines are "0::/group" of the one hierarchy there is, or "4:memory:/group" of an older system.
std::uint64_t limit_of_control_groups() {
  std::string lines;
  try {
    lines = read_whole("/proc/self/cgroup", std::size_t{1} << 16);
  } catch (const Error&) {
    return kNoLimit;
  }
  std::uint64_t limit = kNoLimit;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    at = end + 1;
    const std::size_t slash = line.find(":/");
    if (slash == std::string::npos) continue;
    std::string group = line.substr(slash + 1);
    if (group == "/") group.clear();
    if (line.starts_with("0::"))
      limit = std::min(limit, limit_of_groups("/sys/fs/cgroup", group, "memory.max"));
    else if (line.find(":memory:") != std::string::npos)
      limit =
          std::min(limit, limit_of_groups("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

std::atomic<std::uint64_t> pretended{kNoLimit};

}  // namespace

PretendMemory::PretendMemory(std::uint64_t bytes) { pretended = bytes; }
PretendMemory::~PretendMemory() { pretended = kNoLimit; }

// Groups and the machine stay as they are; ulimits are asked for anew because tests change them.
std::uint64_t process_memory() {
  static const std::uint64_t surroundings =
      std::min(memory_of_machine(), limit_of_control_groups());
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
