// From products to finished scores, and from those to weights or gradients, for the elements of a
// tile that a thread holds in registers. L says which they are (layouts.h). What an option costs
// where it is absent is one branch per tile.
#pragma once

#include "ops/attention/cuda/layouts.h"
#include "ops/attention/cuda/rows.cuh"

namespace heddle::cuda::attention {

// The keys of a tile.
struct KeyTile {
  int batch, key0;
  bool whole;  // every row sees all of them
};

template <class Facts>
__device__ bool sees(const Facts& rows, int row, int key) {
  return key >= rows.first[row] && key < rows.last[row];
}

__device__ inline std::int64_t pair_offset(const RowStrides& strides, int batch, int head,
                                           int query) {
  return batch * strides.batch + head * strides.head + query * strides.row;
}

// cap · tanh(s / cap); slope receives 1 - tanh², the cap's derivative.
template <bool kSlope, class C, int kCount>
__device__ void cap_scores(const Problem& p, C (&s)[kCount], C* slope) {
  const C cap = static_cast<C>(p.softcap), inverse = static_cast<C>(1 / p.softcap);
#pragma unroll
  for (int e = 0; e < kCount; ++e) {
    const C t = hyperbolic_tangent(s[e] * inverse);
    if constexpr (kSlope) slope[e] = C{1} - t * t;
    s[e] = cap * t;
  }
}

// Bias by distance and masks of pairs; a softmax's scores become exponents of two. A number that is
// added is never as good as minus infinity, however low it is: a row of nothing else has weights.
// So scores stay where that product is finite, and are rounded before they are compared: of 1e30
// the last bit is more than any exponent.
template <class L, class C, class Facts>
__device__ void add_to_scores(const Problem& p, const Facts& rows, const KeyTile& t,
                              C (&s)[L::kCount]) {
  const C lowest = static_cast<C>(std::is_same_v<C, double> ? -1e308 : -2e38);
  const C times = static_cast<C>(p.relu ? 1 : kLog2E);
  const int thread = static_cast<int>(threadIdx.x);
  const C* const bias = static_cast<const C*>(p.relative_bias);
  const C* const added = static_cast<const C*>(p.additive_mask);
  const std::int64_t distances = std::int64_t{p.size.queries} + p.size.keys - 1;
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) {
    const int row = L::query(thread, e), key = t.key0 + L::key(thread, e);
    C v = s[e];
    bool seen = sees(rows, row, key);
    if (seen) {
      const int head = rows.head[row], query = rows.query[row];
      if (bias != nullptr) v += bias[head * distances + p.size.queries - 1 - query + key];
      if (added != nullptr) {
        const C m = added[pair_offset(p.additive_strides, t.batch, head, query) + key];
        const C sum = v + m;
        v = sum < lowest ? lowest : sum;  // a NaN stays
        seen = m != minus_infinity<C>();
      }
      if (p.allowed != nullptr)
        seen = seen && p.allowed[pair_offset(p.allowed_strides, t.batch, head, query) + key] != 0;
    }
    s[e] = seen ? rounded_product(v, times) : minus_infinity<C>();
  }
}

// Products to scores: of a softmax exponents of two. Hidden ones are minus infinity. slope (kSlope)
// is written where there is a cap.
template <bool kSlope, class L, class C, class Facts>
__device__ void finish_scores(const Problem& p, const Facts& rows, const KeyTile& t,
                              C (&s)[L::kCount], [[maybe_unused]] C* slope) {
  const C times = static_cast<C>(p.plain ? p.scale * kLog2E : p.scale);
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) s[e] *= times;
  if (!p.plain) {
    if (p.softcap > 0) cap_scores<kSlope>(p, s, slope);
    return add_to_scores<L>(p, rows, t, s);
  }
  if (t.whole) return;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int e = 0; e < L::kCount; ++e)
    if (!sees(rows, L::query(thread, e), t.key0 + L::key(thread, e))) s[e] = minus_infinity<C>();
}

// A NaN stays; minus infinity becomes 0.
template <class C>
__device__ C positive_part(C x) {
  return x < C{0} ? C{0} : x;
}

// ---- dropout
// The word of (row, key) has the number row · ⌈Tk / 4⌉ · 4 + key, on every device and in both
// directions.

__device__ __noinline__ inline std::uint32_t kept_of_four(const Problem& p, int batch, int head,
                                                          int query, int key) {
  const std::int64_t blocks_per_row = (std::int64_t{p.size.keys} + 3) / 4;
  const std::int64_t block = row_number(p, batch, head, query) * blocks_per_row + key / 4;
  RandomKey drawn = p.key;
  drawn.step += *p.later_steps;
  const PhiloxBlock words = philox(drawn, static_cast<std::uint64_t>(block));
  std::uint32_t kept = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) kept |= words[i] < p.threshold ? 0u : 1u << i;
  return kept;
}

// Bit e: element e is kept. Each lane of a warp draws four numbers, which others use as well.
template <class L, class Facts>
__device__ std::uint32_t kept_elements(const Problem& p, const Facts& rows, const KeyTile& t) {
  static_assert(L::kCount <= 32);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  std::uint32_t kept = 0;
#pragma unroll
  for (int eight = 0; eight < L::kCount / 4; ++eight) {
    const int row = L::drawn_query(thread, eight);
    const std::uint32_t drawn = kept_of_four(p, t.batch, rows.head[row], rows.query[row],
                                             t.key0 + L::drawn_key(thread, eight));
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const std::uint32_t four = __shfl_sync(kWholeWarp, drawn, L::drawer(lane, e));
      kept |= (four >> L::number(lane, e) & 1u) << (4 * eight + e);
    }
  }
  return kept;
}

template <class L, class Facts>
  requires requires { L::kOwn; }
__device__ std::uint32_t kept_elements(const Problem& p, const Facts& rows, const KeyTile& t) {
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t kept = 0;
#pragma unroll
  for (int i = 0; i < L::kOwn; ++i) {
    const int row = L::query(thread, i * L::kOwn), key = t.key0 + L::key(thread, 0);
    const std::uint32_t four = kept_of_four(p, t.batch, rows.head[row], rows.query[row], key);
    kept |= (four >> key % 4 & ((1u << L::kOwn) - 1)) << (i * L::kOwn);
  }
  return kept;
}

template <class L, class C, class Facts>
__device__ void drop_weights(const Problem& p, const Facts& rows, const KeyTile& t,
                             C (&w)[L::kCount]) {
  const std::uint32_t kept = kept_elements<L>(p, rows, t);
  const C times = static_cast<C>(p.kept_times);
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) w[e] = (kept >> e & 1u) != 0 ? w[e] * times : C{0};
}

// ---- gradients
// With weights P (after dropout P'), row sums D = Σ dy·y and dP = dy · Vᵀ (dropout applied):
//   softmax  dS = P ∘ (dP - D)
//   relu     dS = [S > 0] ∘ (dP - D) / R
// From scores s and dP: s becomes P', and dp becomes dS.
template <class L, class C, class Facts>
__device__ void score_gradients(const Problem& p, const Facts& rows, const KeyTile& t,
                                C (&s)[L::kCount], C (&dp)[L::kCount]) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::uint32_t kept = p.drops ? kept_elements<L>(p, rows, t) : 0xffffffffu;
  const C times = static_cast<C>(p.kept_times);
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) {
    const int row = L::query(thread, e);
    const C factor = (kept >> e & 1u) != 0 ? times : C{0};
    const C centred = dp[e] * factor - rows.delta[row], share = rows.share[row];
    if (p.relu) {
      const C score = positive_part(s[e]);
      s[e] = score * share * factor;
      dp[e] = score > C{0} ? centred * share : C{0};
    } else {
      const C weight = power_of_two(s[e] - rows.sum[row]) * share;
      s[e] = weight * factor;
      dp[e] = weight > C{0} ? weight * centred : C{0};
    }
  }
}

// The same where P' alone is wanted.
template <class L, class C, class Facts>
__device__ void weights_again(const Problem& p, const Facts& rows, const KeyTile& t,
                              C (&s)[L::kCount]) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) {
    const int row = L::query(thread, e);
    s[e] = (p.relu ? positive_part(s[e]) : power_of_two(s[e] - rows.sum[row])) * rows.share[row];
  }
  if (p.drops) drop_weights<L>(p, rows, t, s);
}

}  // namespace heddle::cuda::attention
