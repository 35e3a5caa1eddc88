// The gradients on tensor cores. Scores are computed again from q and k, a tile at a time; every
// sum is made by one warp in one order.
//   query by query: dQ = scale · dS · K, and sums of dS by distance and by pair
//   key by key:     dV = P'ᵀ · dY, dK = scale · dSᵀ · Q
#include "backend/cuda/launch.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/mma_tiles.cuh"
#include "ops/attention/cuda/pair_sums.cuh"
#include "ops/attention/cuda/paths.h"

namespace heddle::cuda::attention {

namespace {

constexpr int kWarps = 4;
constexpr int kBlockThreads = 32 * kWarps;

// ------------------------------------------------------------------------------ query by query

template <int kWidth_>
struct QueryShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kRows = 16 * kWarps;
  static constexpr int kKeys = kWidth == 256 ? 32 : 64;
  static constexpr int kRowBytes = kRows * kWidth * 2, kKeyBytes = kKeys * kWidth * 2;
  using L = QueriesByWarp<kKeys>;
  using Facts = GradientFacts<float, kRows>;
};

// Tiles in shared memory, by address.
struct TilesOfScores {
  std::uint32_t q, dy, k, v;
};

// dS of the tile before the cap's derivative; with kSlope multiplied with it.
template <int kWidth, bool kSlope>
__device__ void scores_backward(const BackwardProblem& p,
                                const typename QueryShape<kWidth>::Facts& rows, const KeyTile& t,
                                const TilesOfScores& at,
                                float (&ds)[QueryShape<kWidth>::kKeys / 2]) {
  using T = QueryShape<kWidth>;
  constexpr int kCount = T::kKeys / 2;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  float s[kCount], slope[kSlope ? kCount : 1];
  multiply_rows<kWidth, T::kKeys>(s, at.q, row, at.k, p.size.width);
  finish_scores<kSlope, typename T::L>(p, rows, t, s, slope);
  multiply_rows<kWidth, T::kKeys>(ds, at.dy, row, at.v, p.size.value_width);
  score_gradients<typename T::L>(p, rows, t, s, ds);
  if constexpr (kSlope)
    if (p.softcap > 0)
#pragma unroll
      for (int e = 0; e < kCount; ++e) ds[e] *= slope[e];
}

// Which rows a block has. Later ones come first: behind a causal mask they are the longest.
__device__ RowTile query_work(const Problem& p, int rows) {
  const unsigned units = static_cast<unsigned>(p.size.batch * p.size.heads);
  const int tiles = ceil_div(p.size.queries, rows);
  const int unit = static_cast<int>(blockIdx.x % units);
  return {unit / p.size.heads, unit % p.size.heads,
          (tiles - 1 - static_cast<int>(blockIdx.x / units)) * rows};
}

template <int kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    mma_query_kernel(const __grid_constant__ BackwardProblem p) {
  using T = QueryShape<kWidth>;
  __shared__ typename T::Facts rows;
  char* const queries = launched_shared_memory();
  char* const outputs = queries + T::kRowBytes;  // dY
  char* const keys = outputs + T::kRowBytes;     // of both stages, then the values
  char* const values = keys + 2 * T::kKeyBytes;
  const RowTile tile = query_work(p, T::kRows);
  const int batch = tile.batch, key_head = tile.head / p.group;
  note_gradient_rows<float>(p, tile, rows);
  __syncthreads();
  const Span span = span_of(rows);
  const auto load_keys = [&](int key0, int stage) {
    if (key0 < span.end) {
      load_rows<kWidth, T::kKeys, kBlockThreads>(
          p, keys + stage * T::kKeyBytes, p.size.width,
          rows_of_keys(p, p.k, p.k_strides, batch, key_head, key0));
      load_rows<kWidth, T::kKeys, kBlockThreads>(
          p, values + stage * T::kKeyBytes, p.size.value_width,
          rows_of_keys(p, p.v, p.v_strides, batch, key_head, key0));
    }
    end_of_copies();
  };
  load_rows<kWidth, T::kRows, kBlockThreads>(p, queries, p.size.width,
                                             rows_of_queries(p, rows, batch));
  load_rows<kWidth, T::kRows, kBlockThreads>(p, outputs, p.size.value_width,
                                             rows_of_outputs(p, p.dy, rows, batch));
  float dq[kWidth / 2];
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) dq[i] = 0;
  int stage = 0;
  load_keys(span.begin / T::kKeys * T::kKeys, 0);
  for (int key0 = span.begin / T::kKeys * T::kKeys; key0 < span.end; key0 += T::kKeys, stage ^= 1) {
    load_keys(key0 + T::kKeys, stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const std::uint32_t k = address_in_shared(keys + stage * T::kKeyBytes);
    const std::uint32_t v = address_in_shared(values + stage * T::kKeyBytes);
    float ds[T::kKeys / 2];
    scores_backward<kWidth, true>(p, rows, {batch, key0, all_seen(span, key0, T::kKeys)},
                                  {address_in_shared(queries), address_in_shared(outputs), k, v},
                                  ds);
    add_weighted_rows<kWidth, T::kKeys>(dq, ds, k, p.size.width);
    __syncthreads();  // all are through with this stage
  }
  wait_for_copies<0>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const float scale = static_cast<float>(p.scale);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = rows.query[thread / 32 * 16 + lane / 4 + 8 * r];
    if (query < 0) continue;
    const std::int64_t at = dense_offset(p, batch, tile.head, query, p.size.width);
#pragma unroll
    for (int n = 0; n < kWidth; n += 8) {
      if (n >= p.size.width) break;
      put_pair(p.dq, at + n + lane % 4 * 2, dq[n / 2 + 2 * r] * scale,
               dq[n / 2 + 2 * r + 1] * scale);
    }
  }
}

// ------------------------------------------------------------------- sums of dS over many tiles

// dS of any tile: loads everything, waits, computes. False, and nothing is written, where nobody
// sees a key of it.
template <int kWidth>
__device__ bool scores_of_tile(const BackwardProblem& p, typename QueryShape<kWidth>::Facts& rows,
                               char* shared, const RowTile& tile, int key0,
                               float (&ds)[QueryShape<kWidth>::kKeys / 2]) {
  using T = QueryShape<kWidth>;
  __syncthreads();  // all are through with the tile before
  note_gradient_rows<float>(p, tile, rows);
  __syncthreads();
  const Span span = span_of(rows);
  if (key0 + T::kKeys <= span.begin || key0 >= span.end) return false;
  const int batch = tile.batch, key_head = tile.head / p.group;
  char* const outputs = shared + T::kRowBytes;
  char* const keys = outputs + T::kRowBytes;
  char* const values = keys + T::kKeyBytes;
  load_rows<kWidth, T::kRows, kBlockThreads>(p, shared, p.size.width,
                                             rows_of_queries(p, rows, batch));
  load_rows<kWidth, T::kRows, kBlockThreads>(p, outputs, p.size.value_width,
                                             rows_of_outputs(p, p.dy, rows, batch));
  load_rows<kWidth, T::kKeys, kBlockThreads>(
      p, keys, p.size.width, rows_of_keys(p, p.k, p.k_strides, batch, key_head, key0));
  load_rows<kWidth, T::kKeys, kBlockThreads>(
      p, values, p.size.value_width, rows_of_keys(p, p.v, p.v_strides, batch, key_head, key0));
  end_of_copies();
  wait_for_copies<0>();
  __syncthreads();
  scores_backward<kWidth, false>(p, rows, {batch, key0, all_seen(span, key0, T::kKeys)},
                                 {address_in_shared(shared), address_in_shared(outputs),
                                  address_in_shared(keys), address_in_shared(values)},
                                 ds);
  return true;
}

// The parts that pair_sums.cuh asks for.
template <int kWidth>
struct MmaPairs {
  using T = QueryShape<kWidth>;
  using C = float;
  using L = typename T::L;
  static constexpr int kRows = T::kRows, kKeys = T::kKeys;
  typename T::Facts& rows;
  char* shared;

  __device__ bool tile(const BackwardProblem& p, const RowTile& at, int key0,
                       float (&ds)[L::kCount]) {
    return scores_of_tile<kWidth>(p, rows, shared, at, key0, ds);
  }
};

template <int kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    mma_pair_kernel(bool diagonals, const __grid_constant__ BackwardProblem p) {
  using T = QueryShape<kWidth>;
  __shared__ typename T::Facts rows;
  __shared__ float pairs[T::kRows][T::kKeys + 1];
  MmaPairs<kWidth> source{rows, launched_shared_memory()};
  if (diagonals)
    sum_diagonals(p, source, pairs);
  else
    sum_shared_pairs(p, source);
}

// ---------------------------------------------------------------------------------- key by key

template <int kWidth_>
struct KeyShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kKeys = 16 * kWarps;
  static constexpr int kQueries = kWidth == 64 ? 64 : 32;
  static constexpr int kKeyBytes = kKeys * kWidth * 2, kQueryBytes = kQueries * kWidth * 2;
  static constexpr int kBytes = 2 * kKeyBytes + 4 * kQueryBytes;  // two stages of q and dy
  using L = KeysByWarp<kQueries>;
  using Facts = GradientFacts<float, kQueries>;
};

// The tiles of queries, of all heads of a key head, that see one of the keys.
struct QueryWalk {
  int head, tile;  // head: within the group
  bool there;
};

template <int kKeys>
__device__ QueryWalk next_queries(const BackwardProblem& p, int batch, int key0, int query_tiles,
                                  const int2& seen_by, QueryWalk at) {
  const int2* const seen = reinterpret_cast<const int2*>(p.seen) + batch * query_tiles;
  for (;;) {
    if (++at.tile >= seen_by.y) {
      at.tile = seen_by.x;
      ++at.head;
    }
    if (at.head >= p.group || seen_by.x >= seen_by.y) return {at.head, at.tile, false};
    const int2 keys = seen[at.tile];
    if (keys.x < key0 + kKeys && key0 < keys.y) return {at.head, at.tile, true};
  }
}

template <int kWidth, bool kOfKeys, bool kOfValues>
struct KeySums {
  float dk[kOfKeys ? kWidth / 2 : 1], dv[kOfValues ? kWidth / 2 : 1];
};

// One tile of queries: dV += P'ᵀ · dY, dK += dSᵀ · Q.
template <int kWidth, bool kOfKeys, bool kOfValues>
__device__ void add_key_gradients(const BackwardProblem& p,
                                  const typename KeyShape<kWidth>::Facts& rows, const KeyTile& t,
                                  const TilesOfScores& at,
                                  KeySums<kWidth, kOfKeys, kOfValues>& sums) {
  using T = KeyShape<kWidth>;
  constexpr int kCount = T::kQueries / 2;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  float s[kCount], slope[kOfKeys ? kCount : 1];
  multiply_rows<kWidth, T::kQueries>(s, at.k, row, at.q, p.size.width);
  finish_scores<kOfKeys, typename T::L>(p, rows, t, s, slope);
  if constexpr (kOfKeys) {
    float ds[kCount];
    multiply_rows<kWidth, T::kQueries>(ds, at.v, row, at.dy, p.size.value_width);
    score_gradients<typename T::L>(p, rows, t, s, ds);
    if (p.softcap > 0)
#pragma unroll
      for (int e = 0; e < kCount; ++e) ds[e] *= slope[e];
    add_weighted_rows<kWidth, T::kQueries>(sums.dk, ds, at.q, p.size.width);
  } else {
    weights_again<typename T::L>(p, rows, t, s);
  }
  if constexpr (kOfValues)
    add_weighted_rows<kWidth, T::kQueries>(sums.dv, s, at.dy, p.size.value_width);
}

// The rows of a gradient of keys that a warp has.
template <int kWidth>
__device__ void put_key_rows(const Problem& p, void* gradient, int batch, int key_head, int key0,
                             int width, float scale, const float (&sums)[kWidth / 2]) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int key = key0 + thread / 32 * 16 + lane / 4 + 8 * r;
    if (key >= p.size.keys) continue;
    const std::int64_t at = dense_key_offset(p, batch, key_head, key, width);
#pragma unroll
    for (int n = 0; n < kWidth; n += 8) {
      if (n >= width) break;
      put_pair(gradient, at + n + lane % 4 * 2, sums[n / 2 + 2 * r] * scale,
               sums[n / 2 + 2 * r + 1] * scale);
    }
  }
}

// Rows of consecutive queries of a head.
__device__ auto rows_from(const Problem& p, const void* base, std::int64_t first,
                          std::int64_t stride, int origin) {
  const int count = p.size.queries - origin;
  const bf16* const from = static_cast<const bf16*>(base) + first + origin * stride;
  return [from, stride, count](int i) { return i < count ? from + i * stride : nullptr; };
}

template <int kWidth, bool kOfKeys, bool kOfValues>
__global__ void __launch_bounds__(kBlockThreads)
    mma_key_kernel(const __grid_constant__ BackwardProblem p) {
  using T = KeyShape<kWidth>;
  __shared__ typename T::Facts rows[2];
  char* const keys = launched_shared_memory();
  char* const values = keys + T::kKeyBytes;
  char* const queries = values + T::kKeyBytes;  // of both stages, then dY
  char* const outputs = queries + 2 * T::kQueryBytes;
  const unsigned units = static_cast<unsigned>(p.size.batch * p.size.key_heads);
  const int unit = static_cast<int>(blockIdx.x % units);
  const int batch = unit / p.size.key_heads, key_head = unit % p.size.key_heads;
  const int key_tile = static_cast<int>(blockIdx.x / units), key0 = key_tile * T::kKeys;
  const int query_tiles = ceil_div(p.size.queries, T::kQueries);
  const int key_tiles = ceil_div(p.size.keys, T::kKeys);
  const int2 seen_by =
      reinterpret_cast<const int2*>(p.seen_by)[std::int64_t{batch} * key_tiles + key_tile];
  load_rows<kWidth, T::kKeys, kBlockThreads>(
      p, keys, p.size.width, rows_of_keys(p, p.k, p.k_strides, batch, key_head, key0));
  load_rows<kWidth, T::kKeys, kBlockThreads>(
      p, values, p.size.value_width, rows_of_keys(p, p.v, p.v_strides, batch, key_head, key0));
  const auto load_queries = [&](const QueryWalk& at, int stage) {
    if (at.there) {
      const int head = key_head * p.group + at.head, origin = at.tile * T::kQueries;
      const int value_width = p.size.value_width;
      note_gradient_rows<float>(p, {batch, head, origin}, rows[stage]);
      load_rows<kWidth, T::kQueries, kBlockThreads>(
          p, queries + stage * T::kQueryBytes, p.size.width,
          rows_from(p, p.q, query_offset(p, batch, head, 0), p.q_strides.row, origin));
      load_rows<kWidth, T::kQueries, kBlockThreads>(
          p, outputs + stage * T::kQueryBytes, value_width,
          rows_from(p, p.dy, dense_offset(p, batch, head, 0, value_width),
                    std::int64_t{p.size.heads} * value_width, origin));
    }
    end_of_copies();
  };
  const auto next = [&](const QueryWalk& at) {
    return next_queries<T::kKeys>(p, batch, key0, query_tiles, seen_by, at);
  };
  KeySums<kWidth, kOfKeys, kOfValues> sums = {};
  QueryWalk at = next({0, seen_by.x - 1, true});
  load_queries(at, 0);
  for (int stage = 0; at.there; stage ^= 1) {
    const QueryWalk following = next(at);
    load_queries(following, stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const Span span = span_of(rows[stage]);
    add_key_gradients<kWidth, kOfKeys, kOfValues>(
        p, rows[stage], {batch, key0, all_seen(span, key0, T::kKeys)},
        {address_in_shared(queries + stage * T::kQueryBytes),
         address_in_shared(outputs + stage * T::kQueryBytes), address_in_shared(keys),
         address_in_shared(values)},
        sums);
    __syncthreads();  // all are through with this stage
    at = following;
  }
  wait_for_copies<0>();
  if constexpr (kOfKeys)
    put_key_rows<kWidth>(p, p.dk, batch, key_head, key0, p.size.width, static_cast<float>(p.scale),
                         sums.dk);
  if constexpr (kOfValues)
    put_key_rows<kWidth>(p, p.dv, batch, key_head, key0, p.size.value_width, 1.0f, sums.dv);
}

// ------------------------------------------------------------------------------------- launches

// Calls f with the narrowest of the three widths that both heads fit into.
template <class F>
void for_width(const Sizes& size, F f) {
  const int width = std::max(size.width, size.value_width);
  if (width <= 64) return f(std::integral_constant<int, 64>());
  if (width <= 128) return f(std::integral_constant<int, 128>());
  f(std::integral_constant<int, 256>());
}

template <int kWidth, bool kOfKeys, bool kOfValues>
void launch_keys(const BackwardProblem& p, cudaStream_t stream) {
  using T = KeyShape<kWidth>;
  const std::int64_t blocks =
      std::int64_t{p.size.batch} * p.size.key_heads * tiles_of(p.size.keys, T::kKeys);
  start("attention, backward", mma_key_kernel<kWidth, kOfKeys, kOfValues>,
        {blocks, kBlockThreads, T::kBytes, stream}, p);
}

}  // namespace

BackwardTiles mma_tiles(const Sizes& size) {
  BackwardTiles tiles;
  for_width(size, [&](auto width) {
    using Q = QueryShape<decltype(width)::value>;
    using K = KeyShape<decltype(width)::value>;
    tiles = {Q::kRows, Q::kKeys, K::kQueries, K::kKeys};
  });
  return tiles;
}

void mma_query_gradients(const BackwardProblem& p, cudaStream_t stream) {
  for_width(p.size, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    using T = QueryShape<kWidth>;
    start("attention, backward", mma_query_kernel<kWidth>,
          {std::int64_t{p.size.batch} * p.size.heads * tiles_of(p.size.queries, T::kRows),
           kBlockThreads, 2 * T::kRowBytes + 4 * T::kKeyBytes, stream},
          p);
  });
}

// Sums of keys and of values of the widest heads do not fit into the registers together.
void mma_key_gradients(const BackwardProblem& p, cudaStream_t stream) {
  for_width(p.size, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if constexpr (kWidth < 256) {
      launch_keys<kWidth, true, true>(p, stream);
    } else {
      launch_keys<kWidth, true, false>(p, stream);
      launch_keys<kWidth, false, true>(p, stream);
    }
  });
}

void mma_pair_gradients(bool diagonals, const BackwardProblem& p, cudaStream_t stream) {
  for_width(p.size, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    using T = QueryShape<kWidth>;
    const std::int64_t blocks = diagonals ? blocks_of_diagonals(p, T::kRows, T::kKeys)
                                          : blocks_of_pairs(p, T::kRows, T::kKeys);
    start("attention, backward", mma_pair_kernel<kWidth>,
          {blocks, kBlockThreads, 2 * T::kRowBytes + 2 * T::kKeyBytes, stream}, diagonals, p);
  });
}

}  // namespace heddle::cuda::attention
