#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/system/cores.h"
#include "base/system/pages.h"

namespace heddle {
namespace {

TEST(Cores, AreDistinctAndThisThreadIsOnOneOfThem) {
  std::vector<int> cores = allowed_cores();
  ASSERT_FALSE(cores.empty());
  const int here = current_core();
  if (here >= 0) {
    EXPECT_EQ(std::count(cores.begin(), cores.end(), here), 1);
  }
  std::sort(cores.begin(), cores.end());
  EXPECT_EQ(std::adjacent_find(cores.begin(), cores.end()), cores.end());
}

TEST(Pages, AreZerosAndCanBeUsedAgainOnceGivenBack) {
  constexpr std::size_t kSize = std::size_t{4} << 20;
  std::byte* const pages = map_pages(kSize);
  ASSERT_NE(pages, nullptr);
  want_huge_pages(pages, kSize);
  EXPECT_EQ(std::count(pages, pages + kSize, std::byte{0}), static_cast<std::ptrdiff_t>(kSize));
  std::fill_n(pages, kSize, std::byte{7});
  give_back_pages(pages, kSize / 2);
  EXPECT_EQ(std::count(pages + kSize / 2, pages + kSize, std::byte{7}),
            static_cast<std::ptrdiff_t>(kSize / 2));
  std::fill_n(pages, kSize, std::byte{9});
  EXPECT_EQ(pages[0], std::byte{9});
  unmap_pages(pages, kSize);
}

TEST(Pages, AnImpossibleSizeIsRefused) { EXPECT_EQ(map_pages(~std::size_t{0} >> 1), nullptr); }

}  // namespace
}  // namespace heddle
