// A stable radix sort of (row, place), eight bits of the row at a time.
#include "backend/cuda/row_order.h"

#include <string>

#include "backend/cuda/kernel.cuh"
#include "base/divide.h"

namespace heddle::cuda {

namespace {

constexpr int kDigits = 256;
constexpr int kBits = 8;
constexpr std::int64_t kPiece = 2048;  // neighbours that one warp puts in order
constexpr unsigned kAllLanes = 0xffffffffu;

std::int64_t pieces_of(std::int64_t count) { return ceil_div(count, kPiece); }

__device__ int digit_of(std::int32_t row, int shift) { return (row >> shift) & (kDigits - 1); }

// counts[digit][piece]
__global__ void count_digits(const std::int32_t* rows, std::int64_t count, int shift,
                             std::int64_t pieces, std::int32_t* counts) {
  __shared__ std::int32_t own[kDigits];
  for (int d = static_cast<int>(threadIdx.x); d < kDigits; d += 32) own[d] = 0;
  __syncwarp();
  const std::int64_t begin = blockIdx.x * kPiece;
  const std::int64_t end = begin + kPiece < count ? begin + kPiece : count;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += 32)
    atomicAdd(&own[digit_of(rows[i], shift)], 1);  // of integers: any order is the same
  __syncwarp();
  for (int d = static_cast<int>(threadIdx.x); d < kDigits; d += 32)
    counts[d * pieces + blockIdx.x] = own[d];
}

// Every number becomes the sum of those before it; one block.
__global__ void __launch_bounds__(1024) sum_before(std::int32_t* counts, std::int64_t n) {
  __shared__ std::int32_t sums[1024];
  const std::int64_t share = (n + 1023) / 1024;
  const std::int64_t begin = threadIdx.x * share;
  const std::int64_t end = begin + share < n ? begin + share : n;
  std::int32_t own = 0;
  for (std::int64_t i = begin; i < end; ++i) own += counts[i];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned step = 1; step < 1024; step *= 2) {
    const std::int32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  std::int32_t at = sums[threadIdx.x] - own;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t here = counts[i];
    counts[i] = at;
    at += here;
  }
}

// A warp takes 32 neighbours at a time, so equal digits stay in their order.
__global__ void move_by_digit(const std::int32_t* rows, const std::int32_t* places,
                              std::int64_t count, int shift, std::int64_t pieces,
                              const std::int32_t* firsts, std::int32_t* rows_to,
                              std::int32_t* places_to) {
  __shared__ std::int32_t next[kDigits];
  for (int d = static_cast<int>(threadIdx.x); d < kDigits; d += 32)
    next[d] = firsts[d * pieces + blockIdx.x];
  __syncwarp();
  const std::int64_t begin = blockIdx.x * kPiece;
  const std::int64_t end = begin + kPiece < count ? begin + kPiece : count;
  const unsigned before = (1u << threadIdx.x) - 1;
  for (std::int64_t first = begin; first < end; first += 32) {
    const std::int64_t i = first + threadIdx.x;
    const bool there = i < end;
    const int digit = there ? digit_of(rows[i], shift) : kDigits;
    const unsigned equal = __match_any_sync(kAllLanes, digit);
    if (there) {
      const std::int32_t to = next[digit] + __popc(equal & before);
      rows_to[to] = rows[i];
      places_to[to] = places[i];
    }
    __syncwarp();
    if (there && (equal & before) == 0) next[digit] += __popc(equal);
    __syncwarp();
  }
}

template <class I>
void number_places(const void* ids, std::int64_t count, std::int32_t* rows, std::int32_t* places,
                   cudaStream_t stream) {
  const I* const from = static_cast<const I*>(ids);
  each("row order", stream, count, [=] __device__(std::int64_t i) {
    rows[i] = static_cast<std::int32_t>(from[i]);
    places[i] = static_cast<std::int32_t>(i);
  });
}

// Where each row begins among the sorted ones.
void find_starts(const std::int32_t* sorted, std::int64_t count, std::int64_t rows,
                 std::int32_t* starts, cudaStream_t stream) {
  each("row order", stream, rows + 1, [=] __device__(std::int64_t row) {
    std::int64_t low = 0, high = count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (sorted[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    starts[row] = static_cast<std::int32_t>(low);
  });
}

}  // namespace

std::int64_t row_order_words(std::int64_t count) {
  if (count >= std::int64_t{1} << 31)
    fail(ErrorCode::unsupported, "CUDA", "a sum over so many indices", "fewer than 2^31",
         std::to_string(count));
  return 4 * count + kDigits * pieces_of(count);
}

const std::int32_t* row_order(const void* ids, DType dtype, std::int64_t count, std::int64_t rows,
                              std::int32_t* room, std::int32_t* starts, cudaStream_t stream) {
  std::int32_t* keys[2] = {room, room + count};
  std::int32_t* places[2] = {room + 2 * count, room + 3 * count};
  std::int32_t* const counts = room + 4 * count;
  const std::int64_t pieces = pieces_of(count);
  for_index(dtype,
            [&](auto i) { number_places<decltype(i)>(ids, count, keys[0], places[0], stream); });
  int from = 0;
  for (int shift = 0; count > 0 && (rows - 1) >> shift > 0; shift += kBits, from = 1 - from) {
    const auto blocks = static_cast<unsigned>(pieces);
    count_digits<<<blocks, 32, 0, stream>>>(keys[from], count, shift, pieces, counts);
    sum_before<<<1, 1024, 0, stream>>>(counts, kDigits * pieces);
    move_by_digit<<<blocks, 32, 0, stream>>>(keys[from], places[from], count, shift, pieces, counts,
                                             keys[1 - from], places[1 - from]);
    check_launch("row order");
  }
  find_starts(keys[from], count, rows, starts, stream);
  return places[from];
}

}  // namespace heddle::cuda
