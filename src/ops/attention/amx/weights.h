// From a block of turned scores to weights.
//
// Weights are 2^(s - m) with a reference m for every query. Any m near the largest score does:
// sums and weighted sums are divided by each other in the end. So a block is weighed with the m it
// finds, and only where the weights add up to more than kLargestSum is m raised and the block
// weighed again.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "ops/attention/amx/group.h"
#include "ops/attention/power.cpu.h"

namespace heddle::cpu::amx {

inline constexpr float kLargestSum = 256;

// Sixteen queries.
struct Lanes {
  __m512 m, l;          // reference, and the sum of the weights
  __m512 block_sum;     // of the weights of one block
  __m512i first, last;  // keys they see
  __m512i number;       // of the query in the group
};

[[gnu::always_inline]] inline __m512 minus_infinity() noexcept {
  return _mm512_set1_ps(-__builtin_inff());
}

// The vectors' own functions, on plain registers. Relative error 9e-5: weights are rounded to bf16.
using Floats = hn::ScalableTag<float>;

[[gnu::always_inline]] inline __m512 power_of_two(__m512 t) noexcept {
  return attention_detail::power_of_two<false>(Floats(), Vec<Floats>{t}).raw;
}
[[gnu::always_inline]] inline __m512i words(__m512 even, __m512 odd) noexcept {
  return bf16_words(Floats(), Vec<Floats>{even}, Vec<Floats>{odd}).raw;
}

enum class Weigh : std::uint8_t { plain, masked, anything };

// The weights of one block of scores: tiles of 16 keys by 16 queries, [keys / 16][2].
template <Weigh kind>
class Weights {
 public:
  // Of `keys` keys from `key` on.
  Weights(const TurnedGroup& g, Lanes* lanes, std::uint32_t* out, std::int64_t key,
          std::int64_t keys)
      : g_(g),
        lanes_(lanes),
        out_(out),
        key_(static_cast<int>(key)),
        tiles_(static_cast<int>(keys / 16)),
        factor_(_mm512_set1_ps(g.scale * (g.relu ? 1.0f : static_cast<float>(kLog2E)))) {}

  void run(int half) const noexcept {
    Lanes& n = lanes_[half];
    __m512 sum = _mm512_setzero_ps(), other = _mm512_setzero_ps();
    for (int tile = 0; tile < tiles_; ++tile) {
      std::uint32_t* to = out_ + tile / 2 * 512 + half * 256 + tile % 2 * 128;
      for (int row = 0; row < 16; row += 2) {
        const __m512 w0 = weight(exponent(n, half, tile, row));
        const __m512 w1 = weight(exponent(n, half, tile, row + 1));
        sum = _mm512_add_ps(sum, w0);
        other = _mm512_add_ps(other, w1);
        _mm512_store_si512(to + row / 2 * 16, words(w0, w1));
      }
    }
    n.block_sum = _mm512_add_ps(sum, other);
  }

  // The largest logarithm of each query's weights, before m is taken away.
  __m512 largest(int half) const noexcept {
    Lanes n = lanes_[half];
    n.m = _mm512_setzero_ps();
    __m512 best = minus_infinity();
    for (int tile = 0; tile < tiles_; ++tile)
      for (int row = 0; row < 16; ++row) best = _mm512_max_ps(best, exponent(n, half, tile, row));
    return best;
  }

 private:
  [[gnu::always_inline]] __m512 weight(__m512 t) const noexcept {
    if (kind == Weigh::anything && g_.relu) return _mm512_max_ps(_mm512_setzero_ps(), t);
    return power_of_two(t);
  }

  // The logarithm of a key's weights; of relu the score itself, and m is 0.
  [[gnu::always_inline]] __m512 exponent(const Lanes& n, int half, int tile,
                                         int row) const noexcept {
    const __m512 s = _mm512_load_ps(g_.scores + (tile * 2 + half) * 256 + row * 16);
    __m512 t = _mm512_fmsub_ps(s, factor_, n.m);
    if constexpr (kind != Weigh::plain) {
      const __m512i at = _mm512_set1_epi32(key_ + tile * 16 + row);
      const __mmask16 seen =
          _mm512_cmple_epi32_mask(n.first, at) & _mm512_cmplt_epi32_mask(at, n.last);
      if (kind == Weigh::anything && g_.bias != nullptr) {
        const __m512i place = _mm512_maskz_sub_epi32(0xffff, at, n.number);
        const __m512 bias = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), seen, place, g_.bias, 4);
        t = _mm512_fmadd_ps(bias, _mm512_set1_ps(g_.relu ? 1.0f : static_cast<float>(kLog2E)), t);
      }
      t = _mm512_mask_mov_ps(minus_infinity(), seen, t);
    }
    return t;
  }

  const TurnedGroup& g_;
  Lanes* lanes_;
  std::uint32_t* out_;
  int key_, tiles_;
  __m512 factor_;
};

}  // namespace heddle::cpu::amx
