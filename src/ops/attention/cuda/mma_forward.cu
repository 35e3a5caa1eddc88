// The forward pass on tensor cores: a block of threads has 16 queries per warp, walks over the
// tiles of keys that they see, and keeps per row the maximum m, the sum l of 2^(s - m) and the sum
// o of 2^(s - m) · v; all are rescaled when m moves (online softmax). The next tile of keys is on
// its way while this one is multiplied.
#include "backend/cuda/launch.cuh"
#include "ops/attention/cuda/mma_tiles.cuh"
#include "ops/attention/cuda/paths.h"

namespace heddle::cuda::attention {

namespace {

template <int kWidth_, int kWarps>
struct ForwardShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRows = 16 * kWarps;
  static constexpr int kKeys = kWidth == 256 ? 32 : 64;
  static constexpr int kQueryBytes = kRows * kWidth * 2, kKeyBytes = kKeys * kWidth * 2;
  static constexpr int kBytes = kQueryBytes + 4 * kKeyBytes;  // two stages of keys and values
  using L = QueriesByWarp<kKeys>;
};

// Two rows of a thread: lane / 4 of the warp's 16, and the one eight below.
template <int kWidth>
struct ForwardState {
  float m[2], l[2];  // l: of this lane's keys alone
  float o[kWidth / 2];
};

template <int kWidth>
__device__ ForwardState<kWidth> start_rows(const Problem& p, const int* heads) {
  ForwardState<kWidth> f;
  const int thread = static_cast<int>(threadIdx.x);
  // With the keys in pieces, the sink comes at the end.
  const float* const sinks = p.pieces > 1 ? nullptr : static_cast<const float*>(p.sinks);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * r;
    f.m[r] =
        sinks == nullptr ? minus_infinity<float>() : sinks[heads[row]] * static_cast<float>(kLog2E);
    f.l[r] = sinks != nullptr && thread % 4 == 0 ? 1.0f : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) f.o[i] = 0;
  return f;
}

// Scores to weights; sums and what was weighted so far follow the maximum.
template <int kKeys, int kWidth>
__device__ void weigh(const Problem& p, float (&s)[kKeys / 2], ForwardState<kWidth>& f) {
  if (p.relu) {
#pragma unroll
    for (int e = 0; e < kKeys / 2; ++e) {
      s[e] = positive_part(s[e]);
      f.l[e >> 1 & 1] += s[e];
    }
    return;
  }
  float shrink[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float top = f.m[r];
#pragma unroll
    for (int e = 2 * r; e < kKeys / 2; e += 4) top = fmaxf(top, fmaxf(s[e], s[e + 1]));
    top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 1));
    top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 2));
    const float base = top == minus_infinity<float>() ? 0.0f : top;  // -inf - -inf is NaN
    shrink[r] = power_of_two(f.m[r] - base);
    f.m[r] = top;
    float sum = 0;
#pragma unroll
    for (int e = 2 * r; e < kKeys / 2; e += 4) {
      s[e] = power_of_two(s[e] - base);
      s[e + 1] = power_of_two(s[e + 1] - base);
      sum += s[e] + s[e + 1];
    }
    f.l[r] = f.l[r] * shrink[r] + sum;
  }
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) f.o[i] *= shrink[i >> 1 & 1];
}

// Sums of the four lanes that share a row.
__device__ float sum_of_row(float l) {
  l += __shfl_xor_sync(kWholeWarp, l, 1);
  return l + __shfl_xor_sync(kWholeWarp, l, 2);
}

template <int kWidth>
__device__ void put_rows(const Problem& p, const ForwardWork& work, const int* heads,
                         const int* queries, const ForwardState<kWidth>& f) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int width = p.size.value_width;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float l = sum_of_row(f.l[r]);
    const int row = thread / 32 * 16 + lane / 4 + 8 * r, query = queries[row];
    if (query < 0) continue;
    const std::int64_t number = row_number(p, work.tile.batch, heads[row], query);
    const float inverse = p.pieces > 1 ? 1.0f : inverse_sum(l);
    float* const partial = static_cast<float*>(p.partial) +
                           (work.piece * p.all_rows() + number) * (std::int64_t{width} + 2);
    const std::int64_t at = dense_offset(p, work.tile.batch, heads[row], query, width);
#pragma unroll
    for (int n = 0; n < kWidth; n += 8) {
      if (n >= width) break;
      const int column = n + lane % 4 * 2;
      const float a = f.o[n / 2 + 2 * r] * inverse, b = f.o[n / 2 + 2 * r + 1] * inverse;
      if (p.pieces > 1) {
        partial[column] = a;
        partial[column + 1] = b;
      } else {
        put_pair(p.y, at + column, a, b);
      }
    }
    if (lane % 4 != 0) continue;
    if (p.pieces > 1) {
      partial[width] = f.m[r];
      partial[width + 1] = l;
    } else {
      put_row_sums(p, number, f.m[r], l);
    }
  }
}

template <int kWidth, int kWarps>
__global__ void __launch_bounds__(32 * kWarps)
    mma_forward_kernel(const __grid_constant__ Problem p) {
  using T = ForwardShape<kWidth, kWarps>;
  __shared__ RowFacts<T::kRows> rows;
  char* const queries = launched_shared_memory();
  char* const keys = queries + T::kQueryBytes;  // of both stages, then the values
  char* const values = keys + 2 * T::kKeyBytes;
  const ForwardWork work = forward_work(p, T::kRows, 1);
  const int batch = work.tile.batch;
  const int key_head = p.together ? work.tile.head : work.tile.head / p.group;
  note_rows(p, work.tile, rows);
  __syncthreads();
  const Span span = span_of(rows);
  const int from = p.pieces > 1 ? max(span.begin, work.piece * kPieceKeys) : span.begin;
  const int to = p.pieces > 1 ? min(span.end, (work.piece + 1) * kPieceKeys) : span.end;
  const auto load_keys = [&](int key0, int stage) {
    if (key0 < to) {
      load_rows<kWidth, T::kKeys, T::kThreads>(
          p, keys + stage * T::kKeyBytes, p.size.width,
          rows_of_keys(p, p.k, p.k_strides, batch, key_head, key0));
      load_rows<kWidth, T::kKeys, T::kThreads>(
          p, values + stage * T::kKeyBytes, p.size.value_width,
          rows_of_keys(p, p.v, p.v_strides, batch, key_head, key0));
    }
    end_of_copies();
  };
  ForwardState<kWidth> f = start_rows<kWidth>(p, rows.head);
  load_rows<kWidth, T::kRows, T::kThreads>(p, queries, p.size.width,
                                           rows_of_queries(p, rows, batch));
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  int stage = 0;
  load_keys(from / T::kKeys * T::kKeys, 0);
  for (int key0 = from / T::kKeys * T::kKeys; key0 < to; key0 += T::kKeys, stage ^= 1) {
    load_keys(key0 + T::kKeys, stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    float s[T::kKeys / 2];
    multiply_rows<kWidth, T::kKeys>(s, address_in_shared(queries), row,
                                    address_in_shared(keys + stage * T::kKeyBytes), p.size.width);
    const KeyTile t{batch, key0, all_seen(span, key0, T::kKeys)};
    finish_scores<false, typename T::L>(p, rows, t, s, static_cast<float*>(nullptr));
    weigh<T::kKeys, kWidth>(p, s, f);
    if (p.drops) drop_weights<typename T::L>(p, rows, t, s);
    add_weighted_rows<kWidth, T::kKeys>(f.o, s, address_in_shared(values + stage * T::kKeyBytes),
                                        p.size.value_width);
    __syncthreads();  // all are through with this stage
  }
  wait_for_copies<0>();
  put_rows<kWidth>(p, work, rows.head, rows.query, f);
}

template <int kWidth, int kWarps>
void launch_forward(const Problem& p, cudaStream_t stream) {
  using T = ForwardShape<kWidth, kWarps>;
  const std::int64_t heads = p.together ? p.size.key_heads : p.size.heads;
  const std::int64_t rows = p.together ? std::int64_t{p.group} * p.size.queries : p.size.queries;
  start(
      "attention", mma_forward_kernel<kWidth, kWarps>,
      {p.size.batch * heads * tiles_of(rows, T::kRows) * p.pieces, T::kThreads, T::kBytes, stream},
      p);
}

template <int kWarps>
void launch_forward(const Problem& p, cudaStream_t stream) {
  const int width = std::max(p.size.width, p.size.value_width);
  if (width <= 64) return launch_forward<64, kWarps>(p, stream);
  if (width <= 128) return launch_forward<128, kWarps>(p, stream);
  launch_forward<256, kWarps>(p, stream);
}

}  // namespace

void mma_forward(const Problem& p, cudaStream_t stream) {
  if (p.together && p.group * p.size.queries <= 16) return launch_forward<1>(p, stream);
  launch_forward<4>(p, stream);
}

}  // namespace heddle::cuda::attention
