// Tiles of bf16 in shared memory and their products by tensor cores, m16n8k16. A warp multiplies 16
// rows at a time; widths are multiples of 16.
#pragma once

#include "ops/attention/cuda/scores.cuh"

namespace heddle::cuda::attention {

// Head widths up to kWidth.
inline constexpr int kWidestMma = 256;

// Rows of `width` elements to a tile. row(i) is where row i lies; null: zeros.
template <int kWidth, int kRows, int kThreads, class RowOf>
__device__ void load_rows(const Problem& p, char* tile, int width, RowOf row) {
  constexpr int kPieces = kWidth / 8;
  static_assert(kThreads % kPieces == 0);
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = thread % kPieces;
  if (piece * 8 >= width) return;  // nobody reads it
  const std::uint32_t to = address_in_shared(tile);
#pragma unroll
  for (int i = thread / kPieces; i < kRows; i += kThreads / kPieces) {
    const bf16* const from = row(i);
    const int offset = piece_offset<kWidth>(i, piece);
    if (p.aligned) {
      copy_beside(to + static_cast<std::uint32_t>(offset), from == nullptr ? p.q : from + piece * 8,
                  from != nullptr);
      continue;
    }
    std::uint16_t* const place = reinterpret_cast<std::uint16_t*>(tile + offset);
#pragma unroll
    for (int x = 0; x < 8; ++x)
      place[x] = from == nullptr ? std::uint16_t{0} : from[piece * 8 + x].bits;
  }
}

// 16 rows and 16 columns of a tile, as the left side of a product.
template <int kWidth>
__device__ void load_left(std::uint32_t (&r)[4], std::uint32_t tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_four<false>(r, tile + static_cast<std::uint32_t>(
                                 piece_offset<kWidth>(row + lane % 16, column / 8 + lane / 16)));
}

// 16 rows and 16 columns of a tile as the right side: its rows are the columns of the product. The
// first two words are rows 0 to 7.
template <int kWidth>
__device__ void load_right(std::uint32_t (&r)[4], std::uint32_t tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_four<false>(r, tile + static_cast<std::uint32_t>(piece_offset<kWidth>(
                                 row + lane % 8 + lane / 16 * 8, column / 8 + lane / 8 % 2)));
}

// ... and where its rows are what is summed over. The first two words are columns 0 to 7.
template <int kWidth>
__device__ void load_right_rows(std::uint32_t (&r)[4], std::uint32_t tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_four<true>(r, tile + static_cast<std::uint32_t>(
                                piece_offset<kWidth>(row + lane % 16, column / 8 + lane / 16)));
}

// sums[16, kColumns] = 16 rows of the left tile · (the right tile's rows)ᵀ
template <int kWidth, int kColumns>
__device__ void multiply_rows(float (&sums)[kColumns / 2], std::uint32_t left, int row,
                              std::uint32_t right, int width) {
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
#pragma unroll
  for (int k = 0; k < kWidth; k += 16) {
    if (k >= width) break;
    std::uint32_t a[4];
    load_left<kWidth>(a, left, row, k);
#pragma unroll
    for (int n = 0; n < kColumns; n += 16) {
      std::uint32_t b[4];
      load_right<kWidth>(b, right, n, k);
      tensor_product(sums + n / 2, a, b[0], b[1]);
      tensor_product(sums + n / 2 + 4, a, b[2], b[3]);
    }
  }
}

// sums[16, width] += weights[16, kSteps] · the tile's first kSteps rows. The weights are sums of a
// product before this one.
template <int kWidth, int kSteps>
__device__ void add_weighted_rows(float (&sums)[kWidth / 2], const float (&weights)[kSteps / 2],
                                  std::uint32_t tile, int width) {
#pragma unroll
  for (int k = 0; k < kSteps; k += 16) {
    const float* const w = weights + k / 2;
    const std::uint32_t a[4] = {bf16_pair(w[0], w[1]), bf16_pair(w[2], w[3]), bf16_pair(w[4], w[5]),
                                bf16_pair(w[6], w[7])};
#pragma unroll
    for (int n = 0; n < kWidth; n += 16) {
      if (n >= width) break;
      std::uint32_t b[4];
      load_right_rows<kWidth>(b, tile, k, n);
      tensor_product(sums + n / 2, a, b[0], b[1]);
      tensor_product(sums + n / 2 + 4, a, b[2], b[3]);
    }
  }
}

// Where rows of bf16 lie, for load_rows(). Rows of queries that are not there, and keys from the
// sequence's end on, are null.
template <class Facts>
__device__ auto rows_of_queries(const Problem& p, const Facts& rows, int batch) {
  return [&p, &rows, batch](int i) -> const bf16* {
    const int query = rows.query[i];
    return query < 0 ? nullptr
                     : static_cast<const bf16*>(p.q) + query_offset(p, batch, rows.head[i], query);
  };
}
template <class Facts>
__device__ auto rows_of_outputs(const Problem& p, const void* base, const Facts& rows, int batch) {
  return [&p, base, &rows, batch](int i) -> const bf16* {
    const int query = rows.query[i];
    return query < 0 ? nullptr
                     : static_cast<const bf16*>(base) +
                           dense_offset(p, batch, rows.head[i], query, p.size.value_width);
  };
}
__device__ inline auto rows_of_keys(const Problem& p, const void* base, const RowStrides& strides,
                                    int batch, int key_head, int key0) {
  const int end = p.end_key[batch];
  return [&p, base, &strides, batch, key_head, key0, end](int i) -> const bf16* {
    const int key = key0 + i;
    return key >= end
               ? nullptr
               : static_cast<const bf16*>(base) + key_offset(p, strides, batch, key_head, key);
  };
}

// Two neighbours of a row of bf16.
__device__ inline void put_pair(void* base, std::int64_t at, float a, float b) {
  *reinterpret_cast<std::uint32_t*>(static_cast<bf16*>(base) + at) = bf16_pair(a, b);
}

}  // namespace heddle::cuda::attention
