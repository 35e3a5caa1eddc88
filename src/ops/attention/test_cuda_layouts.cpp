// Which bits of what dropout keeps a thread of the warpgroups' tiles reads, for every thread and
// element: by the same arithmetic, on the host.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

#include "ops/attention/cuda/drawn.h"
#include "ops/attention/cuda/layouts.h"

namespace heddle::cuda::attention {
namespace kept_bits {
namespace {

// What `prmt` does: of each of four nibbles, the byte that it names; with 8, that byte's top bit.
std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t nibble = selector >> (4 * i) & 15;
    auto byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7)) & 0xff);
    if ((nibble & 8) != 0) byte = byte >> 7 != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Two halves of a pair of weights.
std::uint32_t mask_of(bool first, bool second) {
  return (first ? 0x0000ffffu : 0u) | (second ? 0xffff0000u : 0u);
}

TEST(CudaLayouts, APairsMaskIsOfItsTwoColumns) {
  // Each column alone, so that no two can be taken for each other.
  for (int column = 0; column < 32; ++column) {
    const std::uint32_t word = 1u << column;
    for (int lane = 0; lane < 32; ++lane)
      for (int n = 0; n < 4; ++n) {
        const int own = 8 * n + lane % 4 * 2;
        const std::uint32_t second = word << kept_shift(lane, 1), first = second << 1;
        EXPECT_EQ(first, word << kept_shift(lane, 0));
        EXPECT_EQ(permuted(first, second, kept_selector(n)),
                  mask_of(own == column, own + 1 == column))
            << "column " << column << ", lane " << lane << ", columns from " << own;
      }
  }
  EXPECT_EQ(kept_selector(6), kept_selector(2));  // of the word behind
}

TEST(CudaLayouts, ThirtyTwoWordsChangeRowsForColumns) {
  std::array<std::uint32_t, 32> words = {};
  for (std::uint32_t row = 0; row < 32; ++row) words[row] = 0x9e3779b9u * (row + 1) ^ row << 13;
  std::array<std::uint32_t, 32> turned = words;
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::array<std::uint32_t, 32> before = turned;
    for (int lane = 0; lane < 32; ++lane)
      turned[static_cast<std::size_t>(lane)] =
          transpose_step(before[static_cast<std::size_t>(lane)],
                         before[static_cast<std::size_t>(lane ^ distance)], lane, distance);
  }
  for (std::size_t row = 0; row < 32; ++row)
    for (std::size_t column = 0; column < 32; ++column)
      EXPECT_EQ(turned[column] >> row & 1, words[row] >> column & 1) << row << ", " << column;
}

TEST(CudaLayouts, KeysOfRoundsThatAreKnownChangeNoNumber) {
  for (const std::uint64_t seed : {0ull, 7ull, 0x123456789abcdefull, ~0ull})
    for (const std::uint32_t step : {0u, 1u, 0xffffffffu})
      for (const std::uint64_t index : {0ull, 1ull, 0xffffffffull, 0x100000000ull, ~0ull})
        EXPECT_EQ(philox_by(rounds_of(seed), step, step + 5, index),
                  philox(RandomKey{seed, step, step + 5}, index))
            << seed << ", " << step << ", " << index;
}

// Every pair has a bit of its own, within the room that is taken.
void expect_a_bit_each(const KeptLayout& layout, int heads, int rows, int columns) {
  std::set<std::int64_t> bits;
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        const int word = column / 32;
        bits.insert((layout.offset(head, word / layout.words, row) + word % layout.words) * 32 +
                    column % 32);
      }
  EXPECT_EQ(static_cast<std::int64_t>(bits.size()), std::int64_t{heads} * rows * columns);
  EXPECT_GE(*bits.begin(), 0);
  EXPECT_LT(*bits.rbegin(), heads * layout.words_of_head() * 32);
}

TEST(CudaLayouts, EveryPairHasABit) {
  expect_a_bit_each(kept_by_query(130, 257), 2, 130, 257);
  expect_a_bit_each(kept_by_query(9, 1), 3, 9, 1);
  expect_a_bit_each(kept_by_key(257, 130, 128), 2, 130, 257);  // width 64
  expect_a_bit_each(kept_by_key(257, 130, 64), 2, 130, 257);   // width 128
}

TEST(CudaLayouts, WordsOfATileLieTogether) {
  // Forward: a query's four words of 128 keys, then the next query's.
  const KeptLayout forward = kept_by_query(300, 300);
  EXPECT_EQ(forward.rows, 384);
  EXPECT_EQ(forward.offset(0, 0, 1), 4);
  EXPECT_EQ(forward.offset(0, 1, 0), 384 * 4);
  EXPECT_EQ(forward.offset(1, 0, 0), 3 * 384 * 4);
  // Backward: 128 keys of a tile of queries are one copy of 1 or 2 KiB, at a multiple of 16 bytes.
  const KeptLayout narrow = kept_by_key(300, 200, 128), wide = kept_by_key(300, 200, 64);
  EXPECT_EQ(narrow.offset(0, 2, 128) - narrow.offset(0, 2, 0), 128 * 4);
  EXPECT_EQ(wide.offset(0, 4, 128) - wide.offset(0, 4, 0), 128 * 2);
  EXPECT_EQ(wide.offset(1, 0, 0), 5 * 256 * 2);
}

}  // namespace
}  // namespace kept_bits
}  // namespace heddle::cuda::attention
