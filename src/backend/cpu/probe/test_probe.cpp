// The probe of the memory's bandwidth: what it takes, and what it does where there is little.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "backend/cpu/probe/probe.h"
#include "base/process_memory.h"
#include "base/sanitizers.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

[[maybe_unused]] constexpr std::int64_t kMega = std::int64_t{1} << 20;
constexpr double kSeconds = 0.005;

TEST(Probe, RefusesNumbersOfArrays) {
  EXPECT_THROW(stream_bandwidth(0, 0, kSeconds), Error);
  EXPECT_THROW(stream_bandwidth(9, 0, kSeconds), Error);
  EXPECT_THROW(stream_bandwidth(1, -1, kSeconds), Error);
}

// Sanitizers have memory of their own, and take terabytes of addresses.
#if !HEDDLE_SANITIZED_MEMORY
// How far the resident memory rose above what it was, and how much of it stayed.
struct Rise {
  std::int64_t peak;
  std::int64_t kept;
};

Rise rise_of_a_probe(std::int64_t most) {
  reset_resident_peak();
  const std::int64_t before = resident_bytes();
  const std::optional<double> rate = stream_bandwidth(4, 3, kSeconds, {most, 0});
  EXPECT_TRUE(rate);
  EXPECT_GT(rate.value_or(0), 1e8);
  return {resident_peak() - before, resident_bytes() - before};
}

// A kernel that takes idle pages away (DAMON) gives back those of other tests at any time, and they
// count as a rise: the smallest of three is the probe's own.
TEST(Probe, TakesWhatItMayAndGivesItBack) {
  (void)stream_bandwidth(4, 3, kSeconds, {8 * kMega, 0});  // threads and code are there now
  for (const std::int64_t most : {16 * kMega, 64 * kMega}) {
    Rise least = rise_of_a_probe(most);
    for (int again = 0; again < 2; ++again) {
      const Rise rise = rise_of_a_probe(most);
      least = {std::min(least.peak, rise.peak), std::min(least.kept, rise.kept)};
    }
    EXPECT_GE(least.peak, most - 4 * kMega);
    EXPECT_LE(least.peak, most + 2 * kMega);
    EXPECT_LE(least.kept, 2 * kMega);
  }
}

class LimitedAddresses {
 public:
  explicit LimitedAddresses(std::int64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit narrow{static_cast<rlim_t>(address_space() + more), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &narrow), 0);
  }
  ~LimitedAddresses() { setrlimit(RLIMIT_AS, &before_); }
  LimitedAddresses(const LimitedAddresses&) = delete;
  LimitedAddresses& operator=(const LimitedAddresses&) = delete;

 private:
  static std::int64_t address_space();

  rlimit before_{};
};

std::int64_t LimitedAddresses::address_space() {
  std::int64_t kilobytes = 0;
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr)
    if (long long n = 0; std::sscanf(line, "VmSize: %lld kB", &n) == 1) kilobytes = n;
  if (status != nullptr) std::fclose(status);
  return kilobytes * 1024;
}

TEST(Probe, AdaptsToTheMemoryThereIs) {
  (void)stream_bandwidth(1, 0, kSeconds, {kMega, 0});
  const LimitedAddresses limit(64 * kMega);
  EXPECT_FALSE(read_bandwidth(kSeconds)) << "less than half of 128 MB is left";
  EXPECT_FALSE(stream_bandwidth(4, 3, kSeconds, {512 * kMega, 33 * kMega}));
  reset_resident_peak();
  const std::int64_t before = resident_bytes();
  EXPECT_TRUE(stream_bandwidth(4, 3, kSeconds, {512 * kMega, 8 * kMega}));
  EXPECT_LE(resident_peak(), before + 34 * kMega);
  EXPECT_GE(resident_peak(), before + 24 * kMega);
}
#endif

}  // namespace
}  // namespace heddle::cpu
