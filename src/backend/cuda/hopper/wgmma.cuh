// Products of sm_90a's tensor cores. A warpgroup, four warps, multiplies 64 rows at a time, and
// goes on while they do: a product is issued, and waited for when its result is needed. B comes
// from shared memory, A from there or from registers, sums are in registers.
//
// The compiler must not touch registers of a product that is under way. It keeps that by itself
// only if it sees it: between issue and wait nothing may read or write them, no product may be
// under way where a loop closes, and touched() tells it where values come and go. Where it does not
// see it, it waits after every product and says so (C7510 to C7515): those warnings are errors.
#pragma once

#include <cstdint>

namespace heddle::cuda {

// ---- tiles in shared memory
// Columns in chunks of 64 bf16, 128 bytes a row, rows of a chunk one after the other; of every
// eight rows the 16-byte pieces change places by the row's number, as the memory unit writes them
// by CU_TENSOR_MAP_SWIZZLE_128B. Eight rows begin at multiples of 1024 bytes.
inline constexpr int kChunkColumns = 64, kChunkRowBytes = 128;

constexpr int swizzled_offset(int row, int piece, int rows_of_tile) {  // piece: of 8 columns
  return piece / 8 * rows_of_tile * kChunkRowBytes + row * kChunkRowBytes +
         ((piece % 8) ^ (row % 8)) * 16;
}

// Where an operand begins. `chunk_bytes`: from one chunk of 64 columns to the next, of an operand
// whose rows are summed over; of one whose columns are, a product reads one chunk only.
__device__ inline std::uint64_t operand_at(std::uint32_t address, int chunk_bytes) {
  constexpr std::uint64_t kEightRows = 1024 >> 4, kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | static_cast<std::uint64_t>(chunk_bytes >> 4) << 16 |
         kEightRows << 32 | kSwizzle128 << 62;
}
// Along columns, 16 at a time, and along rows.
__device__ inline std::uint64_t columns_at(std::uint32_t tile, int rows_of_tile, int step) {
  return operand_at(
      tile + static_cast<std::uint32_t>(step / 4 * rows_of_tile * kChunkRowBytes + step % 4 * 32),
      16);
}
__device__ inline std::uint64_t rows_at(std::uint32_t tile, int rows_of_tile, int step) {
  return operand_at(tile + static_cast<std::uint32_t>(step * 16 * kChunkRowBytes),
                    rows_of_tile * kChunkRowBytes);
}

// ---- order
__device__ inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_of_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// All but the last kPending groups of products are done.
template <int kPending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
template <int kCount>
__device__ __forceinline__ void touched(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void touched(std::uint32_t (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// ---- products
// d[64, kColumns] (+)= a[64, 16] · b[16, kColumns]. Of d a thread has the elements that
// tensor_product() has of 16 rows per warp, eight columns after the other.
// kRowsOfA, kRowsOfB: the operand is summed over along its rows, not its columns.
template <int kColumns>
struct Wgmma;

#define HEDDLE_D8(i)                                                                    \
  "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define HEDDLE_D32(i) HEDDLE_D8(i), HEDDLE_D8((i) + 8), HEDDLE_D8((i) + 16), HEDDLE_D8((i) + 24)
#define HEDDLE_N32                                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_N64                                                                               \
  HEDDLE_N32                                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

template <>
struct Wgmma<64> {
  template <bool kRowsOfA, bool kRowsOfB>
  static __device__ __forceinline__ void shared(float (&d)[32], std::uint64_t a, std::uint64_t b,
                                                bool add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" HEDDLE_N32
        "}, %32, %33, p, 1, 1, %35, %36;\n}\n"
        : HEDDLE_D32(0)
        : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kRowsOfA), "n"(kRowsOfB));
  }
  template <bool kRowsOfB>
  static __device__ __forceinline__ void registers(float (&d)[32], const std::uint32_t* a,
                                                   std::uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" HEDDLE_N32
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, %37;\n"
                 : HEDDLE_D32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kRowsOfB));
  }
};

template <>
struct Wgmma<128> {
  template <bool kRowsOfA, bool kRowsOfB>
  static __device__ __forceinline__ void shared(float (&d)[64], std::uint64_t a, std::uint64_t b,
                                                bool add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" HEDDLE_N64
        "}, %64, %65, p, 1, 1, %67, %68;\n}\n"
        : HEDDLE_D32(0), HEDDLE_D32(32)
        : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kRowsOfA), "n"(kRowsOfB));
  }
  template <bool kRowsOfB>
  static __device__ __forceinline__ void registers(float (&d)[64], const std::uint32_t* a,
                                                   std::uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" HEDDLE_N64
                 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, %69;\n"
                 : HEDDLE_D32(0), HEDDLE_D32(32)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kRowsOfB));
  }
};

#undef HEDDLE_D8
#undef HEDDLE_D32
#undef HEDDLE_N32
#undef HEDDLE_N64

}  // namespace heddle::cuda
