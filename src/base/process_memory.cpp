#include "base/process_memory.h"

#include <sys/resource.h>
#if defined(__linux__)
#include <malloc.h>
#endif

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace heddle {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr const char* kStatus = "/proc/self/status";

// The number after a key in a file of lines "key: number kB" or "key number"; in bytes.
std::optional<std::int64_t> number_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    std::int64_t number = 0;
    std::string unit;
    if (!(words >> number) || number < 0) return std::nullopt;
    words >> unit;
    if (unit != "kB") return number;
    return number > kNoLimit / 1024 ? kNoLimit : number * 1024;
  }
  return std::nullopt;
}

// A file that is one number. Nothing where it says "max" or is not there.
std::optional<std::int64_t> number_in(const std::string& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  std::int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || number < 0) return std::nullopt;
  return number;
}

void tighten(MemoryLimits& limits, std::int64_t total, std::int64_t used) {
  limits.total = std::min(limits.total, total);
  limits.available = std::min(limits.available, std::max<std::int64_t>(0, total - used));
}

void machine_limits(const std::string& root, MemoryLimits& limits) {
  const std::string path = root + "/proc/meminfo";
  const auto total = number_of(path, "MemTotal:");
  if (!total) return;
  const std::int64_t swap = number_of(path, "SwapTotal:").value_or(0);
  limits.total = std::min(limits.total, *total + swap);
  // Swap is left out of what is available: a measurement in it would be of the disk.
  limits.available = std::min(limits.available, number_of(path, "MemAvailable:").value_or(*total));
}

// File names of one version of control groups.
struct GroupFiles {
  const char* folder;
  const char* limit;
  const char* used;
  const char* reclaimable;  // key in memory.stat: cached files, which the kernel drops first
};
constexpr GroupFiles kSecond = {"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                "inactive_file "};
constexpr GroupFiles kFirst = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                               "/memory.usage_in_bytes", "total_inactive_file "};

// The group and all that it lies in. In a container the path may be the host's, and what is there
// is the folder itself.
void group_limits(const std::string& root, const GroupFiles& files, std::string group,
                  MemoryLimits& limits) {
  while (true) {
    while (group.ends_with('/')) group.pop_back();
    std::string folder = root;
    folder.append(files.folder).append(group);
    if (const auto limit = number_in(folder + files.limit)) {
      const std::int64_t used = number_in(folder + files.used).value_or(0);
      const std::int64_t cached = number_of(folder + "/memory.stat", files.reclaimable).value_or(0);
      tighten(limits, *limit, std::max<std::int64_t>(0, used - cached));
    }
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

// Lines "0::/path" (second version) and "4:memory:/path" (first).
void control_group_limits(const std::string& root, MemoryLimits& limits) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (names == ",,")
      group_limits(root, kSecond, group, limits);
    else if (names.find(",memory,") != std::string::npos)
      group_limits(root, kFirst, group, limits);
  }
}

MemoryLimits surrounding_limits(const std::string& root) {
  MemoryLimits limits{kNoLimit, kNoLimit};
  machine_limits(root, limits);
  control_group_limits(root, limits);
  return limits;
}

void own_limits(const std::string& root, MemoryLimits& limits) {
  const auto limit_by = [&](auto resource, std::string_view used) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const auto bytes =
        static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kNoLimit)));
    tighten(limits, bytes, number_of(root + kStatus, used).value_or(0));
  };
  limit_by(RLIMIT_AS, "VmSize:");
  limit_by(RLIMIT_DATA, "VmData:");
}

}  // namespace

std::int64_t resident_bytes() { return number_of(kStatus, "VmRSS:").value_or(0); }

std::int64_t resident_peak() { return number_of(kStatus, "VmHWM:").value_or(0); }

void reset_resident_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

MemoryLimits memory_limits(const std::string& root) {
  MemoryLimits limits = surrounding_limits(root);
  own_limits(root, limits);
  return limits;
}

std::int64_t surrounding_memory(const std::string& root) { return surrounding_limits(root).total; }

}  // namespace heddle
