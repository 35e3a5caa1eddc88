// The probe of the memory's bandwidth: what it takes, and what it does where there is little.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "backend/cpu/probe/probe.h"
#include "base/process_memory.h"
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
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Probe, TakesWhatItMayAndGivesItBack) {
  (void)stream_bandwidth(4, 3, kSeconds, {8 * kMega, 0});  // threads and code are there now
  for (const std::int64_t most : {16 * kMega, 64 * kMega}) {
    reset_resident_peak();
    const std::int64_t before = resident_bytes();
    const std::optional<double> rate = stream_bandwidth(4, 3, kSeconds, {most, 0});
    ASSERT_TRUE(rate);
    EXPECT_GT(*rate, 1e8);
    EXPECT_GE(resident_peak(), before + most - 4 * kMega);
    EXPECT_LE(resident_peak(), before + most + 2 * kMega);
    EXPECT_LE(resident_bytes(), before + 2 * kMega);
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
