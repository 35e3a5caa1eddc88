#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "tensor/device_blocks.h"

namespace heddle {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A device with 512 MiB whose addresses must not be dereferenced.
struct PretendDevice {
  static constexpr std::size_t kBytes = 512 * kMiB;
  static inline std::set<std::byte*> regions;
  static inline std::size_t used = 0;

  static std::byte* take(std::size_t bytes) {
    if (used + bytes > kBytes) return nullptr;
    auto* const region = reinterpret_cast<std::byte*>((regions.size() + 1) << 40);
    used += bytes;
    regions.insert(region);
    return region;
  }
  static void give_back(std::byte* region, std::size_t bytes) {
    EXPECT_EQ(regions.erase(region), 1u);
    used -= bytes;
  }
  static constexpr RegionSource kSource = {take, give_back, nullptr};

  PretendDevice() {
    regions.clear();
    used = 0;
  }
};

TEST(DeviceBlocks, NeverLooksBehindAnAddressAndReusesAtOnce) {
  const PretendDevice device;
  DeviceBlocks blocks(PretendDevice::kSource);
  std::byte* const small = blocks.allocate(1000);
  std::byte* const other = blocks.allocate(1000);
  EXPECT_EQ(other - small, 1024);  // multiples of 256
  blocks.release(small, 1000);
  EXPECT_EQ(blocks.allocate(900), small);  // of the same size class
  std::byte* const large = blocks.allocate(3 * kMiB);
  blocks.release(large, 3 * kMiB);
  EXPECT_EQ(blocks.allocate(2 * kMiB), large);
  EXPECT_EQ(PretendDevice::regions.size(), 1u);
}

TEST(DeviceBlocks, WhatIsKeptGoesBackBeforeADeviceIsFull) {
  const PretendDevice device;
  DeviceBlocks blocks(PretendDevice::kSource);
  std::byte* const first = blocks.allocate(300 * kMiB);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(blocks.allocate(400 * kMiB), nullptr);  // 300 are in use
  blocks.release(first, 300 * kMiB);
  EXPECT_NE(blocks.allocate(400 * kMiB), nullptr);  // only in the place of the 300
  EXPECT_EQ(PretendDevice::used, 400 * kMiB);
}

TEST(DeviceBlocks, RefusedSmallBlocksAreNull) {
  const PretendDevice device;
  DeviceBlocks blocks(PretendDevice::kSource);
  ASSERT_NE(blocks.allocate(512 * kMiB), nullptr);
  EXPECT_EQ(blocks.allocate(64), nullptr);
}

}  // namespace
}  // namespace heddle
