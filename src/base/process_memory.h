// Memory of this process as the kernel counts it, and what it may still take.
#pragma once

#include <cstdint>
#include <string>

namespace heddle {

// Resident memory now, and its maximum since the start or the last reset, in bytes; 0 where the
// system does not tell. (/proc/self/status: VmRSS, VmHWM.)
std::int64_t resident_bytes();
std::int64_t resident_peak();
void reset_resident_peak();  // the peak becomes what is resident now, where the system allows it

// Hands what the heap keeps of freed blocks back to the system, where it can.
void trim_heap();

struct MemoryLimits {
  // All that this process could ever have: the machine's memory with its swap, the limit of its
  // control group, its own limits (ulimit -v, ulimit -d).
  std::int64_t total;
  // Memory it can still take now without the system having to kill a process: the least of what is
  // left of each of these.
  std::int64_t available;
};

// The largest number where nothing limits it or the system does not tell. `root` is put before the
// paths that are read (/proc, /sys/fs/cgroup); for tests.
MemoryLimits memory_limits(const std::string& root = {});

// The total without the process's own limits: of the machine and the control groups alone.
std::int64_t surrounding_memory(const std::string& root = {});

}  // namespace heddle
