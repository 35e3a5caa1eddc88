// The memory a process may still take, from made-up system files.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/process_memory.h"
#include "base/sanitizers.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

[[maybe_unused]] constexpr std::int64_t kMega = std::int64_t{1} << 20;

class SystemFiles {
 public:
  SystemFiles() {
    std::string pattern = (fs::temp_directory_path() / "heddle-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    root_ = pattern;
  }
  ~SystemFiles() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  SystemFiles(const SystemFiles&) = delete;
  SystemFiles& operator=(const SystemFiles&) = delete;

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  MemoryLimits limits() const { return memory_limits(root_); }
  std::int64_t surroundings() const { return surrounding_memory(root_); }

 private:
  std::string root_;
};

TEST(MemoryLimits, OfTheMachine) {
  const SystemFiles files;
  EXPECT_EQ(files.limits().available, std::numeric_limits<std::int64_t>::max());
  files.put("/proc/meminfo",
            "MemTotal:   4096 kB\nMemFree:  512 kB\nMemAvailable:  1024 kB\nSwapTotal: 100 kB\n");
  EXPECT_EQ(files.limits().total, (4096 + 100) * 1024);
  EXPECT_EQ(files.limits().available, 1024 * 1024);
}

// A group lies in others, and each of them may be the narrowest.
TEST(MemoryLimits, OfControlGroups) {
  const SystemFiles files;
  files.put("/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 4000 kB\n");
  files.put("/proc/self/cgroup", "0::/outer/inner\n");
  files.put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(files.limits().total, 4096 * 1024);
  files.put("/sys/fs/cgroup/outer/memory.max", "1000000\n");
  files.put("/sys/fs/cgroup/outer/memory.current", "700000\n");
  EXPECT_EQ(files.limits().total, 1000000);
  EXPECT_EQ(files.limits().available, 300000);
  // Cached files give way.
  files.put("/sys/fs/cgroup/outer/memory.stat", "anon 300000\ninactive_file 250000\n");
  EXPECT_EQ(files.limits().available, 550000);
  files.put("/sys/fs/cgroup/outer/inner/memory.max", "90000\n");
  files.put("/sys/fs/cgroup/outer/inner/memory.current", "95000\n");
  EXPECT_EQ(files.limits().total, 90000);
  EXPECT_EQ(files.limits().available, 0);
}

TEST(MemoryLimits, OfControlGroupsOfTheFirstVersionInAContainer) {
  const SystemFiles files;
  files.put("/proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/docker/of-the-host\n");
  files.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  files.put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(files.limits().total, 500000);
  EXPECT_EQ(files.surroundings(), 500000);
  EXPECT_EQ(files.limits().available, 400000);
}

TEST(MemoryLimits, NonsenseLimitsNothing) {
  const SystemFiles files;
  files.put("/proc/meminfo", "MemTotal: much kB\n");
  files.put("/proc/self/cgroup", "0\n::\n:::::\n0::nowhere\n\n");
  files.put("/sys/fs/cgroup/memory.max", "-5\n");
  EXPECT_EQ(files.limits().total, std::numeric_limits<std::int64_t>::max());
}

TEST(MemoryLimits, OfTheProcess) {
  const SystemFiles files;
  files.put("/proc/self/status", "VmSize:  1024 kB\nVmData: 10 kB\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit narrow{std::uint64_t{64} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &narrow), 0);
  const MemoryLimits limits = files.limits();
  const std::int64_t around = files.surroundings();
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(limits.total, std::int64_t{64} << 30);
  EXPECT_EQ(around, std::numeric_limits<std::int64_t>::max()) << "not of the surroundings";
  EXPECT_EQ(limits.available, (std::int64_t{64} << 30) - 10 * 1024);
}

// A sanitizer keeps what was freed.
#if !HEDDLE_SANITIZED_MEMORY
TEST(ProcessMemory, PeakOfWhatWasTouched) {
  const std::int64_t before = resident_bytes();
  ASSERT_GT(before, 0) << "the system does not tell";
  EXPECT_GE(resident_peak(), before);
  // Straight from the system: an allocator may have had the pages already, and may keep them.
  constexpr std::size_t kBlock = 64 * kMega;
  void* const block =
      mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 'x', kBlock);
  EXPECT_GE(resident_bytes(), before + 60 * kMega);
  munmap(block, kBlock);
  EXPECT_LT(resident_bytes(), before + 8 * kMega);
  EXPECT_GE(resident_peak(), before + 60 * kMega);
}
#endif

}  // namespace
}  // namespace heddle
