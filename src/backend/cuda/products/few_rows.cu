// Rows of the weight are the rows of a tensor-core product, rows of x its columns: 16 × 8 sums for
// a warp, whatever of the eight columns is used. A sum over k is cut into eight parts by k alone,
// one for each warp of a block, and those are added in order. So the bits of a row depend neither
// on how many others there are nor on which weights share the launch.
#include "backend/cuda/products/few_rows.h"

#include "backend/cuda/gate.cuh"
#include "backend/cuda/instructions.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"

namespace heddle::cuda {

namespace {

constexpr int kParts = kThreads / 32;  // of k, a warp each
constexpr int kStep = 32;              // of k: eight of each of the four lanes that share a row
constexpr int kAhead = 8;              // steps that a lane has on their way
constexpr int kEach = 8;               // elements of bf16 in 16 bytes
constexpr int kTileRows = 16;

// Rows of x in shared memory begin half of all banks apart.
constexpr int held_columns(int columns) { return (columns + 63) / 64 * 64 + 32; }

constexpr int shared_bytes(std::int64_t rows, std::int64_t columns) {
  return static_cast<int>(rows) * held_columns(static_cast<int>(columns)) *
         static_cast<int>(sizeof(bf16));
}

// Of a norm: x and the residual, gain and bias.
constexpr int norm_bytes(std::int64_t rows, std::int64_t columns) {
  return 2 * shared_bytes(rows, columns) +
         2 * static_cast<int>(columns) * static_cast<int>(sizeof(float));
}

// With what the kernel declares itself, within what every GPU from compute capability 8.0 on has.
constexpr int kMostShared = 92 * 1024;

// Where everything lies in shared memory.
struct Held {
  int pitch;       // of rows
  bf16* x;         // [rows, pitch]
  bf16* residual;  // of a norm, as x
  float* gain;     // of a norm, [columns]
  float* bias;
};

__device__ Held held_memory(int rows, int columns) {
  Held h;
  h.pitch = held_columns(columns);
  h.x = reinterpret_cast<bf16*>(launched_shared_memory());
  h.residual = h.x + rows * h.pitch;
  h.gain = reinterpret_cast<float*>(h.residual + rows * h.pitch);
  h.bias = h.gain + columns;
  return h;
}

// Rows and parameters set out for shared memory, each thread's own vectors: before the weights, so
// that they do not arrive behind them.
__device__ void begin_rows(const bf16* from, std::int64_t stride, int rows, int columns, bf16* to,
                           int pitch) {
  for (int row = 0; row < rows; ++row)
    for (int i = static_cast<int>(threadIdx.x); i < columns / kEach; i += kThreads)
      copy_beside(address_in_shared(to + row * pitch + i * kEach), from + row * stride + i * kEach,
                  true);
}

__device__ void begin_parameters(const float* from, int columns, float* to) {
  if (from == nullptr) return;
  for (int i = static_cast<int>(threadIdx.x); i < columns / kEach; i += kThreads) {
    copy_beside(address_in_shared(to + i * kEach), from + i * kEach, true);
    copy_beside(address_in_shared(to + i * kEach + kEach / 2), from + i * kEach + kEach / 2, true);
  }
}

__device__ void begin_norm(const FewNorm& n, const Held& held) {
  begin_rows(n.x, n.columns, n.rows, n.columns, held.x, held.pitch);
  if (n.residual != nullptr)
    begin_rows(n.residual, n.columns, n.rows, n.columns, held.residual, held.pitch);
  begin_parameters(n.gain, n.columns, held.gain);
  begin_parameters(n.bias, n.columns, held.bias);
  end_of_copies();
}

struct WarpSums {
  float of[kFewRows][kParts];  // of each row of x, by warp
};

__device__ float sum_of_warp(float v) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(kWholeWarp, v, lane);
  return v;
}

__device__ void note_sum(WarpSums& sums, int row, float v) {
  v = sum_of_warp(v);
  if (threadIdx.x % 32 == 0) sums.of[row][threadIdx.x / 32] = v;
}

__device__ float sum_of_block(const WarpSums& sums, int row) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kParts; ++w) sum += sums.of[row][w];
  return sum;
}

__device__ uint4* held_vector(bf16* held, int pitch, int row, int vector) {
  return reinterpret_cast<uint4*>(held + row * pitch) + vector;
}

// Loops over vectors of a row are not unrolled: weights on their way take half of the registers.

// The rows of x + residual, rounded, to shared memory, and the sum of their elements or squares.
template <bool kCentred>
__device__ void hold_rows(const FewNorm& n, const Held& held, WarpSums& sums) {
  for (int row = 0; row < n.rows; ++row) {
    float total = 0;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < n.columns / kEach; i += kThreads) {
      const std::int64_t at = std::int64_t{row} * n.columns + i * kEach;
      uint4* const own = held_vector(held.x, held.pitch, row, i);
      uint4 raw = *own;
      if (n.residual != nullptr) {
        raw = narrowed<bf16>(
            mapped<bf16>([](float v, float w) { return v + w; }, widened<bf16>(raw),
                         widened<bf16>(*held_vector(held.residual, held.pitch, row, i))));
        *own = raw;
        if (blockIdx.x == 0) *reinterpret_cast<uint4*>(n.sum + at) = raw;
      }
      const Values<bf16> v = widened<bf16>(raw);
#pragma unroll
      for (int e = 0; e < kEach; ++e) total += kCentred ? v.v[e] : v.v[e] * v.v[e];
    }
    note_sum(sums, row, total);
  }
}

// Each thread reads what it wrote itself.
__device__ void sum_squares(const FewNorm& n, const Held& held, const float* means,
                            WarpSums& sums) {
  for (int row = 0; row < n.rows; ++row) {
    float squares = 0;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < n.columns / kEach; i += kThreads) {
      const Values<bf16> v = widened<bf16>(*held_vector(held.x, held.pitch, row, i));
#pragma unroll
      for (int e = 0; e < kEach; ++e) squares += (v.v[e] - means[row]) * (v.v[e] - means[row]);
    }
    note_sum(sums, row, squares);
  }
}

// Behind begin_norm(): leaves y in shared memory; the first block writes it. A barrier must follow.
__device__ void normalise(const FewNorm& n, const Held& held) {
  __shared__ WarpSums first, second;
  __shared__ float means[kFewRows];
  const float share = 1.0f / static_cast<float>(n.columns);
  wait_for_copies<0>();  // each thread reads what it has set out itself
  if (n.centred) {
    hold_rows<true>(n, held, second);
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < n.rows)
      means[threadIdx.x] = sum_of_block(second, static_cast<int>(threadIdx.x)) * share;
    __syncthreads();
    sum_squares(n, held, means, first);
  } else {
    hold_rows<false>(n, held, first);
  }
  __syncthreads();
  for (int row = 0; row < n.rows; ++row) {
    const float mean = n.centred ? means[row] : 0.0f;
    const float rstd = 1.0f / sqrtf(sum_of_block(first, row) * share + n.eps);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < n.columns / kEach; i += kThreads) {
      uint4* const at = held_vector(held.x, held.pitch, row, i);
      Values<bf16> v = mapped<bf16>([=](float w) { return (w - mean) * rstd; }, widened<bf16>(*at));
      if (n.gain != nullptr)
        v = mapped<bf16>([](float w, float g) { return w * g; }, v,
                         load_parameters<bf16>(held.gain + i * kEach));
      if (n.bias != nullptr)
        v = mapped<bf16>([](float w, float b) { return w + b; }, v,
                         load_parameters<bf16>(held.bias + i * kEach));
      *at = narrowed<bf16>(v);
      if (blockIdx.x == 0)
        *reinterpret_cast<uint4*>(n.y + std::int64_t{row} * n.columns + i * kEach) = *at;
    }
  }
}

// The rows of a weight that a tile has. Gated, the upper half are those that the lower half gates.
struct Tile {
  int low, high;  // the first row of either half
};

template <bool kGated>
__device__ Tile tile_of(int number, int n) {
  if constexpr (kGated) return {number * kTileRows / 2, n / 2 + number * kTileRows / 2};
  return {number * kTileRows, number * kTileRows + kTileRows / 2};
}

__device__ void put(const FewProduct& p, const FewPart& part, int row, int n, float sum) {
  if (part.bias != nullptr) sum += part.bias[n];
  const std::int64_t at = std::int64_t{row} * part.n + n;
  if (p.wide) {
    static_cast<float*>(part.y)[at] = sum;
    return;
  }
  float v = activated<float, bf16>(p.activation, sum).value;
  if (p.residual != nullptr) v += wide(p.residual[at]);
  static_cast<bf16*>(part.y)[at] = narrow<bf16>(v);
}

// Neighbouring 16 bytes that are read once.
__device__ uint4 load_once(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

using Sums = float[kParts][kTileRows][kFewRows];

__device__ float sum_of_parts(const Sums& sums, int row, int column) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kParts; ++w) sum += sums[w][row][column];
  return sum;
}

template <bool kGated>
__device__ void put_tile(const FewProduct& p, const FewPart& part, const Tile& tile,
                         const Sums& sums) {
  constexpr int kRows = kGated ? kTileRows / 2 : kTileRows;
  const int row = static_cast<int>(threadIdx.x) % kRows;
  const int column = static_cast<int>(threadIdx.x) / kRows;
  if (column >= p.m) return;
  if constexpr (kGated) {
    float gate = sum_of_parts(sums, row, column);
    float up = sum_of_parts(sums, row + kRows, column);
    put(p, part, column, tile.low + row, gate);
    put(p, part, column, tile.high + row, up);
    if (part.bias != nullptr) gate += part.bias[tile.low + row];
    if (part.bias != nullptr) up += part.bias[tile.high + row];
    // As if read again: rounded.
    p.gated[std::int64_t{column} * (part.n / 2) + tile.low + row] = narrow<bf16>(
        gated<float>(p.gate, p.limit, wide(narrow<bf16>(gate)), wide(narrow<bf16>(up))));
  } else {
    const int n = tile.low + row;
    if (n < part.n) put(p, part, column, n, sum_of_parts(sums, row, column));
  }
}

// A tile of the launch: whose it is, and which.
struct TilePlace {
  int part, number;
};

__device__ TilePlace tile_place(const FewProduct& p, int number) {
  int part = 0;
  while (part + 1 < p.parts && number >= ceil_div(p.part[part].n, kTileRows))
    number -= ceil_div(p.part[part++].n, kTileRows);
  return {part, number};
}

// A lane's part of a tile: two rows of the weight, and of each 8 of every 32 elements.
struct LaneRows {
  const bf16* low;
  const bf16* high;
};

template <bool kGated>
__device__ LaneRows lane_rows(const FewProduct& p, const TilePlace& place) {
  const FewPart& part = p.part[place.part];
  const Tile tile = tile_of<kGated>(place.number, part.n);
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4, k = lane % 4 * kEach;
  // Rows past the end are read again and not written.
  return {part.weight + min(tile.low + row, part.n - 1) * part.stride + k,
          part.weight + min(tile.high + row, part.n - 1) * part.stride + k};
}

// A block goes from tile to tile, and its loads run ahead of it by kAhead steps, over the end of a
// tile into the next one.
template <bool kGated>
__global__ void __launch_bounds__(kThreads, 2)
    few_product(int tiles, const __grid_constant__ FewProduct p) {
  __shared__ Sums sums;
  const Held held = held_memory(p.m, p.k);
  const bool normed = p.norm.rows > 0;
  if (normed) {
    begin_norm(p.norm, held);
  } else {
    begin_rows(p.x, p.x_stride, p.m, p.k, held.x, held.pitch);
    end_of_copies();
  }
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, own_k = lane % 4 * kEach;
  const int steps = ceil_div(p.k, kStep), each = ceil_div(steps, kParts);
  const int from = warp * each, end = min(from + each, steps);
  const int rounds = ceil_div(each, kAhead);  // of a tile
  const auto has = [&](int step) { return step < end && step * kStep + own_k < p.k; };
  const auto load = [&](const bf16* row, int step) {
    return has(step) ? load_once(row + step * kStep) : uint4{0, 0, 0, 0};
  };
  TilePlace place = tile_place(p, static_cast<int>(blockIdx.x));
  LaneRows rows = lane_rows<kGated>(p, place);
  uint4 low[kAhead], high[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    low[i] = load(rows.low, from + i);
    high[i] = load(rows.high, from + i);
  }
  if (normed)
    normalise(p.norm, held);
  else
    wait_for_copies<0>();
  __syncthreads();
  for (int number = static_cast<int>(blockIdx.x); number < tiles;
       number += static_cast<int>(gridDim.x)) {
    const TilePlace next = tile_place(p, min(number + static_cast<int>(gridDim.x), tiles - 1));
    const bool more = number + static_cast<int>(gridDim.x) < tiles;
    float one[4] = {}, two[4] = {};
    for (int round = 0; round < rounds; ++round) {
      const int step = from + round * kAhead;
      const bool last = round + 1 == rounds;
      if (last) rows = lane_rows<kGated>(p, next);
      const int ahead = last ? from : step + kAhead;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        uint4 x{0, 0, 0, 0};
        if (group < p.m && has(step + i))
          x = *reinterpret_cast<const uint4*>(held.x + group * held.pitch + (step + i) * kStep +
                                              own_k);
        const std::uint32_t a[4] = {low[i].x, high[i].x, low[i].y, high[i].y};
        const std::uint32_t b[4] = {low[i].z, high[i].z, low[i].w, high[i].w};
        tensor_product(one, a, x.x, x.y);
        tensor_product(two, b, x.z, x.w);
        if (last && !more) continue;
        low[i] = load(rows.low, ahead + i);
        high[i] = load(rows.high, ahead + i);
      }
    }
    const int column = lane % 4 * 2;
    *reinterpret_cast<float2*>(&sums[warp][group][column]) = {one[0] + two[0], one[1] + two[1]};
    *reinterpret_cast<float2*>(&sums[warp][group + 8][column]) = {one[2] + two[2], one[3] + two[3]};
    __syncthreads();
    put_tile<kGated>(p, p.part[place.part], tile_of<kGated>(place.number, p.part[place.part].n),
                     sums);
    __syncthreads();  // before the next tile's sums
    place = next;
  }
}

__global__ void __launch_bounds__(kThreads) few_norm(const __grid_constant__ FewNorm n) {
  const Held held = held_memory(n.rows, n.columns);
  begin_norm(n, held);
  normalise(n, held);
}

}  // namespace

namespace {

// Of the device that is current.
int multiprocessors() {
  static thread_local int known_device = -1, count = 0;
  int device = 0;
  HEDDLE_CUDA_CHECK(cudaGetDevice(&device));
  if (device == known_device) return count;
  HEDDLE_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  known_device = device;
  return count;
}

}  // namespace

bool fits_few_rows(std::int64_t rows, std::int64_t columns) {
  return rows > 0 && rows <= kFewRows && columns > 0 && columns <= kFewColumns &&
         columns % kEach == 0 && shared_bytes(rows, columns) <= kMostShared;
}

bool fits_few_norm(std::int64_t rows, std::int64_t columns) {
  return fits_few_rows(rows, columns) && norm_bytes(rows, columns) <= kMostShared;
}

void launch_few(const FewNorm& n, cudaStream_t stream) {
  start("norm", few_norm, {1, kThreads, norm_bytes(n.rows, n.columns), stream}, n);
}

void launch_few(const FewProduct& p, cudaStream_t stream) {
  int tiles = 0;
  for (int i = 0; i < p.parts; ++i)
    tiles += static_cast<int>(ceil_div(p.part[static_cast<std::size_t>(i)].n, kTileRows));
  const int bytes = p.norm.rows > 0 ? norm_bytes(p.m, p.k) : shared_bytes(p.m, p.k);
  // How many blocks share the tiles changes nothing but the time.
  const Launch how{std::min(tiles, 2 * multiprocessors()), kThreads, bytes, stream};
  if (p.gated != nullptr)
    start("product of few rows", few_product<true>, how, tiles, p);
  else
    start("product of few rows", few_product<false>, how, tiles, p);
}

}  // namespace heddle::cuda
