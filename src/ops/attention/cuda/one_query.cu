// A block has 128 keys of a key head, 16 for each warp, and all query heads that share them: those
// are the rows of the tensor-core products. Keys go from memory straight into the registers of a
// product, values through shared memory, which turns them over. The keys' order along a head does
// not matter as long as the queries have the same one, so that a lane loads 16 bytes at a time.
#include "ops/attention/cuda/one_query.cuh"

#include "backend/cuda/instructions.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/turn.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/rows.cuh"

namespace heddle::cuda::attention {

namespace {

constexpr int kQueryWarps = 8;
constexpr int kQueryThreads = 32 * kQueryWarps;
constexpr int kWarpKeys = kPieceKeys / kQueryWarps;
static_assert(kWarpKeys == 16);

template <int kWidth>
struct OneQueryMemory {
  static constexpr int kPitch = kWidth + 8;  // rows that ldmatrix reads lie in different banks
  bf16 q[kOneQueryHeads][kPitch];
  bf16 k[kWidth], v[kWidth];  // of this token
  bf16 values[kQueryWarps][kWarpKeys][kPitch];
  // Of each warp and head: weighted sums of values, then the maximum and the sum of weights.
  float parts[kQueryWarps][kOneQueryHeads][kWidth + 2];
  bool last;
};

// Which keys a block has.
struct Piece {
  int number, key_head, batch;
  int from, to;      // keys that the query sees, of this piece
  int first, count;  // pieces with any such key
  int row;           // of this token, if its key is of this piece; else -1
};

__host__ __device__ int pieces_of_keys(const Sizes& s) {
  return s.keys > 0 ? ceil_div(s.keys, kPieceKeys) : 1;
}

__device__ Piece piece_of(const OneQuery& a) {
  Piece w;
  const int block = static_cast<int>(blockIdx.x), pieces = pieces_of_keys(a.p.size);
  w.number = block % pieces;
  w.key_head = block / pieces % a.p.size.key_heads;
  w.batch = block / pieces / a.p.size.key_heads;
  const int first = a.p.first_key[w.batch], last = a.p.last_key[w.batch];
  w.from = max(first, w.number * kPieceKeys);
  w.to = min(last, (w.number + 1) * kPieceKeys);
  w.first = first / kPieceKeys;
  w.count = first < last ? ceil_div(last, kPieceKeys) - w.first : 0;
  const int row = a.at == nullptr ? -1 : min(max(*a.at, 0), a.p.size.keys - 1);
  w.row = row >= 0 && row / kPieceKeys == w.number ? row : -1;
  return w;
}

// ---- what comes before

// Elements i of both halves of a head that is turned by the angles of its position.
template <int kWidth>
__device__ void turn_pair(const OneQuery& a, const bf16* from, int i, bf16* to, bf16* also) {
  int one = i, two = i + a.pairs;
  if (a.interleaved) {
    one = 2 * i;
    two = 2 * i + 1;
  }
  if (i >= a.pairs) {  // the rest of the head stays as it is
    one = 2 * i;
    two = 2 * i + 1;
  }
  bf16 low = from[one], high = from[two];
  if (i < a.pairs) {
    const int position = min(max(*a.at, 0), a.positions - 1);
    const TurnedPair<float> t = turned_pair(wide(low), wide(high), a.cos[position * a.pairs + i],
                                            a.sin[position * a.pairs + i]);
    low = narrow<bf16>(t.one);
    high = narrow<bf16>(t.two);
  }
  to[one] = low;
  to[two] = high;
  if (also == nullptr) return;
  also[one] = low;
  also[two] = high;
}

// The queries of all heads to shared memory. The block that has this token's key writes everything
// that others will read.
template <int kWidth>
__device__ void hold_queries(const OneQuery& a, const Piece& w, OneQueryMemory<kWidth>& m) {
  const int group = a.p.group;
  constexpr int kHalf = kWidth / 2;
  const bf16* const q = a.at == nullptr ? static_cast<const bf16*>(a.p.q) : a.new_q;
  const RowStrides& strides = a.at == nullptr ? a.p.q_strides : a.new_q_strides;
  for (int i = static_cast<int>(threadIdx.x); i < kOneQueryHeads * kHalf; i += kQueryThreads) {
    const int row = i / kHalf, pair = i % kHalf, head = w.key_head * group + row;
    if (row >= group) {
      m.q[row][2 * pair] = m.q[row][2 * pair + 1] = bf16{0};
      continue;
    }
    bf16* const also = w.row >= 0 && a.turned_q != nullptr
                           ? a.turned_q + (std::int64_t{w.batch} * a.p.size.heads + head) * kWidth
                           : nullptr;
    turn_pair<kWidth>(a, q + w.batch * strides.batch + head * strides.head, pair, m.q[row], also);
  }
}

template <int kWidth>
__device__ void put_key(const OneQuery& a, const Piece& w, OneQueryMemory<kWidth>& m) {
  const int i = static_cast<int>(threadIdx.x);
  const bf16* const k =
      a.new_k + w.batch * a.new_k_strides.batch + w.key_head * a.new_k_strides.head;
  const bf16* const v =
      a.new_v + w.batch * a.new_v_strides.batch + w.key_head * a.new_v_strides.head;
  bf16* const key_row = const_cast<bf16*>(static_cast<const bf16*>(a.p.k)) +
                        w.batch * a.p.k_strides.batch + w.row * a.p.k_strides.row +
                        w.key_head * a.p.k_strides.head;
  bf16* const value_row = const_cast<bf16*>(static_cast<const bf16*>(a.p.v)) +
                          w.batch * a.p.v_strides.batch + w.row * a.p.v_strides.row +
                          w.key_head * a.p.v_strides.head;
  if (i < kWidth / 2) {
    turn_pair<kWidth>(a, k, i, m.k, key_row);
    if (a.turned_k != nullptr)
      turn_pair<kWidth>(
          a, k, i, a.turned_k + (std::int64_t{w.batch} * a.p.size.key_heads + w.key_head) * kWidth,
          nullptr);
  } else if (i >= kWidth && i < 2 * kWidth) {
    m.v[i - kWidth] = value_row[i - kWidth] = v[i - kWidth];
  }
}

// ---- keys and values

template <int kWidth>
__device__ bool stored(const OneQuery& a, const Piece& w, int key) {
  return key >= w.from && key < w.to && key != w.row;
}

// Two groups of eight keys, and of each this lane's 16 bytes of every 64.
template <int kWidth>
__device__ void load_keys(const OneQuery& a, const Piece& w, int key0,
                          uint4 (&keys)[2][kWidth / 32]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int key = key0 + 8 * j + lane / 4;
    const bf16* const row = static_cast<const bf16*>(a.p.k) +
                            key_offset(a.p, a.p.k_strides, w.batch, w.key_head, key) + lane % 4 * 8;
#pragma unroll
    for (int s = 0; s < kWidth / 32; ++s)
      keys[j][s] = stored<kWidth>(a, w, key) ? *reinterpret_cast<const uint4*>(row + 32 * s)
                                             : uint4{0, 0, 0, 0};
  }
}

template <int kWidth>
__device__ void begin_values(const OneQuery& a, const Piece& w, int key0,
                             OneQueryMemory<kWidth>& m) {
  constexpr int kChunks = kWidth / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = lane; i < kWarpKeys * kChunks; i += 32) {
    const int row = i / kChunks, column = i % kChunks * 8, key = key0 + row;
    const bool there = stored<kWidth>(a, w, key);
    const std::int64_t at = key_offset(a.p, a.p.v_strides, w.batch, w.key_head, there ? key : 0);
    copy_beside(address_in_shared(&m.values[warp][row][column]),
                static_cast<const bf16*>(a.p.v) + at + column, there);
  }
  end_of_copies();
}

// This token's key and value, which were not in memory yet.
template <int kWidth>
__device__ void take_own(const Piece& w, int key0, OneQueryMemory<kWidth>& m,
                         uint4 (&keys)[2][kWidth / 32]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int own = w.row - key0;
  if (w.row < w.from || w.row >= w.to || own < 0 || own >= kWarpKeys) return;
#pragma unroll
  for (int j = 0; j < 2; ++j)
    if (own == 8 * j + lane / 4)
#pragma unroll
      for (int s = 0; s < kWidth / 32; ++s)
        keys[j][s] = *reinterpret_cast<const uint4*>(m.k + 32 * s + lane % 4 * 8);
  for (int i = lane; i < kWidth; i += 32) m.values[warp][own][i] = m.v[i];
}

// ---- a warp's keys

// Scores of 16 heads (two rows of a lane) and 16 keys, as exponents of two.
template <int kWidth>
__device__ void scores_of(const OneQuery& a, const Piece& w, int key0,
                          const OneQueryMemory<kWidth>& m, const uint4 (&keys)[2][kWidth / 32],
                          float (&s)[2][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int d = 0; d < kWidth / 32; ++d) {
    const int column = 32 * d + lane % 4 * 8;
    const uint4 low = *reinterpret_cast<const uint4*>(&m.q[lane / 4][column]);
    const uint4 high = *reinterpret_cast<const uint4*>(&m.q[lane / 4 + 8][column]);
    const std::uint32_t first[4] = {low.x, high.x, low.y, high.y};
    const std::uint32_t second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      tensor_product(s[j], first, keys[j][d].x, keys[j][d].y);
      tensor_product(s[j], second, keys[j][d].z, keys[j][d].w);
    }
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int key = key0 + 8 * j + lane % 4 * 2 + e % 2;
      s[j][e] = key >= w.from && key < w.to ? s[j][e] * a.exponent : minus_infinity<float>();
    }
}

// Scores to weights, their maximum and sum, and the weighted sum of the values, to shared memory.
template <int kWidth>
__device__ void weigh_values(const OneQuery& a, float (&s)[2][4], OneQueryMemory<kWidth>& m) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  float top[2], sum[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most = fmaxf(fmaxf(s[0][2 * r], s[0][2 * r + 1]), fmaxf(s[1][2 * r], s[1][2 * r + 1]));
    most = fmaxf(most, __shfl_xor_sync(kWholeWarp, most, 1));
    top[r] = fmaxf(most, __shfl_xor_sync(kWholeWarp, most, 2));
    const float base = top[r] == minus_infinity<float>() ? 0.0f : top[r];
    float l = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[j][e] = power_of_two(s[j][e] - base);
        l += s[j][e];
      }
    l += __shfl_xor_sync(kWholeWarp, l, 1);
    sum[r] = l + __shfl_xor_sync(kWholeWarp, l, 2);
  }
  const std::uint32_t weights[4] = {bf16_pair(s[0][0], s[0][1]), bf16_pair(s[0][2], s[0][3]),
                                    bf16_pair(s[1][0], s[1][1]), bf16_pair(s[1][2], s[1][3])};
  const int row = lane / 4;
  const bool both = a.p.group > 8;
#pragma unroll
  for (int d = 0; d < kWidth; d += 16) {
    std::uint32_t v[4];
    load_four<true>(v, address_in_shared(&m.values[warp][lane % 16][d + lane / 16 * 8]));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float o[4] = {};
      tensor_product(o, weights, v[2 * half], v[2 * half + 1]);
      const int column = d + 8 * half + lane % 4 * 2;
      *reinterpret_cast<float2*>(&m.parts[warp][row][column]) = {o[0], o[1]};
      if (both) *reinterpret_cast<float2*>(&m.parts[warp][row + 8][column]) = {o[2], o[3]};
    }
  }
  if (lane % 4 != 0) return;
  *reinterpret_cast<float2*>(&m.parts[warp][row][kWidth]) = {top[0], sum[0]};
  *reinterpret_cast<float2*>(&m.parts[warp][row + 8][kWidth]) = {top[1], sum[1]};
}

// ---- together

struct Joined {
  float value, top, sum;
};

// Parts `step` apart, each worth 2^(its maximum - the largest one): a column of one head.
template <int kWidth, bool kOthers>
__device__ Joined joined(const float* parts, int count, std::int64_t step, int column, float top) {
  const auto read = [](const float* p) { return kOthers ? __ldcg(p) : *p; };
  for (int i = 0; i < count; ++i) top = fmaxf(top, read(parts + i * step + kWidth));
  const float base = top == minus_infinity<float>() ? 0.0f : top;
  Joined all{0, top, 0};
  for (int i = 0; i < count; ++i) {
    const float worth = power_of_two(read(parts + i * step + kWidth) - base);
    all.value += worth * read(parts + i * step + column);
    all.sum += worth * read(parts + i * step + kWidth + 1);
  }
  return all;
}

template <int kWidth, bool kOthers>
__device__ void put_heads(const OneQuery& a, const Piece& w, const float* parts, int count,
                          std::int64_t step, std::int64_t head_step) {
  for (int i = static_cast<int>(threadIdx.x); i < a.p.group * kWidth; i += kQueryThreads) {
    const int row = i / kWidth, column = i % kWidth, head = w.key_head * a.p.group + row;
    const std::int64_t number = std::int64_t{w.batch} * a.p.size.heads + head;
    const float* const sinks = static_cast<const float*>(a.p.sinks);
    const float sink =
        sinks == nullptr ? minus_infinity<float>() : sinks[head] * static_cast<float>(kLog2E);
    Joined all = joined<kWidth, kOthers>(parts + row * head_step, count, step, column, sink);
    const float base = all.top == minus_infinity<float>() ? 0.0f : all.top;
    if (sinks != nullptr) all.sum += power_of_two(sink - base);
    static_cast<bf16*>(a.p.y)[number * kWidth + column] =
        narrow<bf16>(all.value * inverse_sum(all.sum));
    if (column == 0) put_row_sums(a.p, number, all.top, all.sum);
  }
}

// The last block to arrive has everything of the others before it.
template <int kWidth>
__device__ bool is_last(const OneQuery& a, const Piece& w, OneQueryMemory<kWidth>& m) {
  std::uint32_t* const counter = a.counters + w.batch * a.p.size.key_heads + w.key_head;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    m.last = atomicAdd(counter, 1) == static_cast<std::uint32_t>(w.count - 1);
    if (m.last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return m.last;
}

template <int kWidth>
__device__ void put_piece(const OneQuery& a, const Piece& w, OneQueryMemory<kWidth>& m) {
  constexpr int kRow = kWidth + 2;
  constexpr std::int64_t kHeadStep = kRow, kWarpStep = kOneQueryHeads * kRow;
  if (w.count <= 1)
    return put_heads<kWidth, false>(a, w, &m.parts[0][0][0], kQueryWarps, kWarpStep, kHeadStep);
  const std::int64_t rows = a.p.all_rows();
  const std::int64_t first_head = std::int64_t{w.batch} * a.p.size.heads + w.key_head * a.p.group;
  float* const all = static_cast<float*>(a.p.partial) + first_head * kRow;
  float* const own = all + w.number * rows * kRow;
  for (int i = static_cast<int>(threadIdx.x); i < a.p.group * kWidth; i += kQueryThreads) {
    const int row = i / kWidth, column = i % kWidth;
    const Joined part = joined<kWidth, false>(&m.parts[0][row][0], kQueryWarps, kWarpStep, column,
                                              minus_infinity<float>());
    own[row * kRow + column] = part.value;
    if (column > 0) continue;
    own[row * kRow + kWidth] = part.top;
    own[row * kRow + kWidth + 1] = part.sum;
  }
  if (is_last(a, w, m))
    put_heads<kWidth, true>(a, w, all + w.first * rows * kRow, w.count, rows * kRow, kRow);
}

template <int kWidth>
__global__ void __launch_bounds__(kQueryThreads)
    one_query_kernel(const __grid_constant__ OneQuery a) {
  auto& m = *reinterpret_cast<OneQueryMemory<kWidth>*>(launched_shared_memory());
  const Piece w = piece_of(a);
  const bool sees = w.from < w.to, nothing = w.count == 0 && w.number == 0;
  if (!sees && !nothing && w.row < 0) return;
  const int key0 = w.number * kPieceKeys + static_cast<int>(threadIdx.x) / 32 * kWarpKeys;
  uint4 keys[2][kWidth / 32];
  load_keys<kWidth>(a, w, key0, keys);
  begin_values<kWidth>(a, w, key0, m);
  hold_queries<kWidth>(a, w, m);
  if (w.row >= 0) put_key<kWidth>(a, w, m);
  wait_for_copies<0>();
  __syncthreads();
  if (!sees && !nothing) return;
  take_own<kWidth>(w, key0, m, keys);
  __syncwarp();
  float s[2][4] = {};
  scores_of<kWidth>(a, w, key0, m, keys, s);
  weigh_values<kWidth>(a, s, m);
  __syncthreads();
  put_piece<kWidth>(a, w, m);
}

template <int kWidth>
void launch_one_query(const OneQuery& q, cudaStream_t stream) {
  const Sizes& s = q.p.size;
  start("attention", one_query_kernel<kWidth>,
        {std::int64_t{pieces_of_keys(s)} * s.key_heads * s.batch, kQueryThreads,
         static_cast<int>(sizeof(OneQueryMemory<kWidth>)), stream},
        q);
}

Extent extent_of(const void* data, std::int64_t rows, std::int64_t width) {
  return {data, rows * width * static_cast<std::int64_t>(sizeof(bf16))};
}

}  // namespace

bool fits_one_query(const Problem& p) {
  const std::size_t bytes =
      p.size.width == 64 ? sizeof(OneQueryMemory<64>) : sizeof(OneQueryMemory<128>);
  return static_cast<int>(bytes) <= most_shared_memory() && p.size.queries == 1 &&
         (p.size.width == 64 || p.size.width == 128) && p.size.value_width == p.size.width &&
         p.group <= kOneQueryHeads && p.plain && !p.drops && p.aligned && p.row_parts == nullptr &&
         std::int64_t{p.size.batch} * p.size.key_heads <=
             static_cast<std::int64_t>(CudaEngine::kCounters);
}

void set_step(const FewStep& step, OneQuery& q) {
  const FewPut& k = step.put[0];
  const FewPut& v = step.put[1];
  const int width = q.p.size.width;
  q.at = k.at;
  q.new_q = static_cast<const bf16*>(q.p.q);
  q.new_q_strides = q.p.q_strides;
  q.new_k = k.x;
  q.new_v = v.x;
  q.new_k_strides = {k.batch_stride, 0, width};
  q.new_v_strides = {v.batch_stride, 0, width};
  if (step.ropes == 0) return;
  const FewRope& rope = step.rope[0];
  const FewRope& key_rope = step.rope[1];
  q.pairs = rope.pairs;
  q.positions = rope.positions;
  q.interleaved = rope.interleaved;
  q.cos = rope.cos;
  q.sin = rope.sin;
  q.new_q = rope.x;
  q.new_q_strides = {rope.batch_stride, 0, rope.head_stride};
  q.turned_q = rope.y;
  q.new_k = key_rope.x;
  q.new_k_strides = {key_rope.batch_stride, 0, key_rope.head_stride};
  q.turned_k = key_rope.y;
}

bool may_be_one(const OneQuery& q, const FewStep& step) {
  const Sizes& s = q.p.size;
  const FewPut& put = step.put[0];
  const bool fits =
      put.batch == s.batch && put.width == s.key_heads * s.width && put.rows == s.keys &&
      put.ring_batch_stride == q.p.k_strides.batch && put.ring_row_stride == q.p.k_strides.row &&
      put.ring_batch_stride == q.p.v_strides.batch && put.ring_row_stride == q.p.v_strides.row &&
      q.p.k_strides.head == s.width && q.p.v_strides.head == s.width;
  if (!fits) return false;
  if (step.ropes == 2 && (step.rope[0].width != s.width || step.rope[0].heads != s.heads ||
                          step.rope[0].batch != s.batch || step.rope[1].heads != s.key_heads))
    return false;
  const std::int64_t heads = std::int64_t{s.batch} * s.heads;
  const std::int64_t key_heads = std::int64_t{s.batch} * s.key_heads;
  const Extent written[] = {extent_of(q.p.y, heads, s.width),
                            extent_of(q.turned_q, heads, s.width),
                            extent_of(q.turned_k, key_heads, s.width),
                            {q.p.row_sum, heads * 4},
                            {q.p.partial, q.p.pieces * heads * (s.width + 2) * 4}};
  const Extent read[] = {extent_of(q.new_q, heads, s.width), extent_of(q.new_k, key_heads, s.width),
                         extent_of(q.new_v, key_heads, s.width)};
  bool apart = q.p.first_row == 0 && q.new_q_strides.batch == s.heads * s.width &&
               q.new_k_strides.batch == s.key_heads * s.width &&
               q.new_v_strides.batch == s.key_heads * s.width;
  for (const Extent& w : written)
    for (const Extent& r : read) apart = apart && !w.meets(r);
  return apart;
}

void one_query(const OneQuery& q, cudaStream_t stream) {
  if (q.p.size.width == 64) return launch_one_query<64>(q, stream);
  launch_one_query<128>(q, stream);
}

}  // namespace heddle::cuda::attention
