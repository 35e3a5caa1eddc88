// The interface of a file compiled for one instruction set to the driver, which is compiled for any
// machine: the shape of its register tile and two functions. All sharing of work between threads,
// all allocation and all planning happen on the driver's side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu {

// A rectangle of C. A product is cut into these; each is computed by one thread, over all of K.
struct CRange {
  std::int64_t batch = 0;
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t column_begin = 0, column_end = 0;  // begins at a multiple of Kernels::column_step
};

// Aligned to 64 bytes, at least kScratchABytes, kScratchBBytes and kScratchSumBytes.
struct BlockScratch {
  void* packed_a = nullptr;
  void* packed_b = nullptr;
  void* sums = nullptr;
};

// A part of packing B: the k-block `depth_block` of `panels` panels, from column `column` on.
struct PanelRange {
  std::int64_t depth_block = 0;
  std::int64_t column = 0, panels = 0;
};

// The most rows and columns of a CRange, and the scratch they need: a block of A (kBlockRows rows ×
// kBlockLines cache lines and a third for padding), as many lines of each column of B, and the sums
// of one CRange in f32. f64 sums are as many bytes, because it is bytes that limit a CRange's
// width.
inline constexpr std::int64_t kBlockRows = 144;
inline constexpr std::int64_t kBlockColumnBytes = 384 * 4;
inline constexpr std::int64_t kBlockLines = 24;
inline constexpr std::int64_t kLineBytes = 64;
inline constexpr std::size_t kScratchABytes =
    static_cast<std::size_t>(kBlockRows * kBlockLines * kLineBytes) * 4 / 3;
inline constexpr std::size_t kScratchBBytes =
    static_cast<std::size_t>(kBlockColumnBytes / 4 * kBlockLines * kLineBytes);
inline constexpr std::size_t kScratchSumBytes =
    static_cast<std::size_t>(kBlockRows * kBlockColumnBytes);

struct Kernels {
  std::int64_t rows;           // of the register tile
  std::int64_t columns;        // of the register tile: the width of a panel of packed B
  std::int64_t column_step;    // a CRange begins at a multiple of this
  std::int64_t block_depth;    // elements of K in one k-block
  std::int64_t pair;           // neighbours along K that are packed together: 2 for vdpbf16ps
  std::int64_t element_bytes;  // of one element of packed B
  std::int64_t sum_bytes;      // of one accumulator
  bool stored_b;               // does block() take no B but a packed one?
  void (*pack_b)(std::int64_t k, std::int64_t n, const MatrixRef& b, const PanelRange& range,
                 void* dst) noexcept;
  // One column of packed B as K neighbours.
  void (*unpack_column)(std::int64_t k, std::int64_t n, const void* packed, std::int64_t column,
                        void* to) noexcept;
  // Can block() read job.b in place?
  bool (*reads_b)(const GemmJob& job) noexcept;
  // With packed_b null it reads b in place if it can, and otherwise packs the part it needs.
  void (*block)(const GemmJob& job, const CRange& range, const BlockScratch& scratch) noexcept;
};

}  // namespace heddle::cpu
