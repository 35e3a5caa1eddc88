#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tensor/page_runs.h"

namespace heddle {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(PageRuns, NeighboursJoinAndServeALargerBlock) {
  PageRuns runs;
  std::byte* a = runs.allocate(kMegabyte);
  std::byte* b = runs.allocate(kMegabyte);
  std::byte* c = runs.allocate(kMegabyte);
  ASSERT_EQ(b, a + kMegabyte);
  ASSERT_EQ(c, b + kMegabyte);
  runs.release(a, kMegabyte);
  EXPECT_EQ(runs.allocate(2 * kMegabyte), c + kMegabyte);  // a alone is too small
  runs.release(b, kMegabyte);
  EXPECT_EQ(runs.allocate(2 * kMegabyte), a);  // together they are not
  runs.release(c, kMegabyte);
  EXPECT_EQ(runs.allocate(kMegabyte - 5), c);  // the smallest that fits
}

TEST(PageRuns, TrimGivesBackWhatIsFreeAndKeepsWhatIsNot) {
  PageRuns runs;
  std::byte* a = runs.allocate(kMegabyte);
  std::byte* b = runs.allocate(300 * kMegabyte);  // a region of its own
  std::memset(a, 7, kMegabyte);
  runs.release(b, 300 * kMegabyte);
  runs.trim();
  EXPECT_LT(runs.free_bytes(), 256 * kMegabyte);
  for (std::size_t i = 0; i < kMegabyte; i += 4096) ASSERT_EQ(a[i], std::byte{7});
  runs.release(a, kMegabyte);
  runs.trim();
  EXPECT_EQ(runs.free_bytes(), 0u);
}

// A hundred blocks, every second one released: the holes are too small for what comes next, which
// would make a hundred and fifty megabytes of a hundred in use.
TEST(PageRuns, HolesThatServeNobodyGoBackToTheSystem) {
  PageRuns runs;
  std::vector<std::byte*> blocks;
  for (unsigned i = 0; i < 100; ++i) {
    blocks.push_back(runs.allocate(kMegabyte));
    std::memset(blocks.back(), static_cast<int>(i), kMegabyte);
  }
  EXPECT_EQ(runs.resident_bytes(), 100 * kMegabyte);
  for (std::size_t i = 1; i < 100; i += 2) runs.release(blocks[i], kMegabyte);
  EXPECT_EQ(runs.resident_bytes(), 100 * kMegabyte);  // kept for the next blocks
  for (int i = 0; i < 25; ++i) {
    std::byte* const larger = runs.allocate(2 * kMegabyte);
    ASSERT_NE(larger, nullptr);
    std::memset(larger, 0xff, 2 * kMegabyte);
    EXPECT_LE(runs.resident_bytes(), 100 * kMegabyte + PageRuns::kSlack);
  }
  EXPECT_GE(runs.resident_bytes(), 100 * kMegabyte);
  for (std::size_t i = 0; i < 100; i += 2)
    for (std::size_t at = 0; at < kMegabyte; at += 4096)
      ASSERT_EQ(blocks[i][at], static_cast<std::byte>(i));
}

TEST(PageRuns, AnyOrderOfBlocksStaysApart) {
  PageRuns runs;
  struct Block {
    std::byte* start;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  std::uint64_t state = 1;
  const auto random = [&state](std::uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  };
  const auto intact = [](const Block& b) {
    for (std::size_t i = 0; i < b.size; i += 4096)
      if (b.start[i] != std::byte{b.mark}) return false;
    return b.start[b.size - 1] == std::byte{b.mark};
  };
  for (int step = 0; step < 3000; ++step) {
    if (blocks.size() < 20 || random(2) == 0) {
      const std::size_t size = 1 + random(3 * kMegabyte);
      std::byte* start = runs.allocate(size);
      ASSERT_NE(start, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(start) % PageRuns::kGranule, 0u);
      const auto mark = static_cast<unsigned char>(step);
      for (std::size_t i = 0; i < size; i += 4096) start[i] = std::byte{mark};
      start[size - 1] = std::byte{mark};
      blocks.push_back({start, size, mark});
    } else {
      const std::size_t i = random(blocks.size());
      ASSERT_TRUE(intact(blocks[i]));
      runs.release(blocks[i].start, blocks[i].size);
      blocks[i] = blocks.back();
      blocks.pop_back();
    }
    if (step % 500 == 0) runs.trim();
    if (blocks.size() > 60) {
      runs.release(blocks[0].start, blocks[0].size);
      blocks.erase(blocks.begin());
    }
  }
  for (const Block& b : blocks) {
    ASSERT_TRUE(intact(b));
    runs.release(b.start, b.size);
  }
  runs.trim();
  EXPECT_EQ(runs.free_bytes(), 0u);
}

}  // namespace
}  // namespace heddle
