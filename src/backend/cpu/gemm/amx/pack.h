// From matrices in memory to the blocks that tiles load.
//
// Both operands are cut into blocks of 32 × 32 (2 KiB, zero-padded at the edges), each two tiles:
//
//   A block, 32 rows by 32 k                   B block, 32 k by 32 columns
//     tile 0: row 0   k0 k1 k2 ... k31           tile 0: pair 0   c0k0 c0k1  c1k0 c1k1 ... c15k1
//             ...                                        pair 1   c0k2 c0k3  c1k2 c1k3 ... c15k3
//             row 15                                     ...
//     tile 1: rows 16 .. 31                              pair 15
//                                                tile 1: the same for columns 16 .. 31
//
// Packed B is [panel of 32 columns][k / 32][block], so that a panel is read front to back.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "base/divide.h"

namespace heddle::cpu::amx {

inline constexpr std::int64_t kBlock = 32;
inline constexpr std::int64_t kBlockElements = kBlock * kBlock;

constexpr std::int64_t blocks_of(std::int64_t count) noexcept { return ceil_div(count, kBlock); }

// Rows [row, row + row_blocks * 32) and k [k0, k0 + k_blocks * 32) of a bf16 matrix of m × k, to
// dst as [row block][k block]. Elements beyond m or k become zero.
void pack_a(const MatrixRef& a, std::int64_t m, std::int64_t k, std::int64_t row,
            std::int64_t row_blocks, std::int64_t k0, std::int64_t k_blocks,
            std::uint16_t* dst) noexcept;

// Blocks [first, last) of the blocks_of(k) * blocks_of(n) that make up packed B, counted in the
// order of the source.
void pack_b_blocks(std::int64_t k, std::int64_t n, const MatrixRef& b, std::int64_t first,
                   std::int64_t last, std::uint16_t* dst) noexcept;

// The block of packed B with the columns of `panel` and the k of `step`, to dst.
void pack_b_block(std::int64_t k, std::int64_t n, const MatrixRef& b, std::int64_t panel,
                  std::int64_t step, std::uint16_t* dst) noexcept;

}  // namespace heddle::cpu::amx
