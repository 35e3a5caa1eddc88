// From a block of transposed scores to weights.
//
// Weights are 2^(s - m) with a reference m for every query. Any m near the largest score does:
// sums and weighted sums are divided by each other in the end. So a block is weighed with the m it
// finds, and only where the weights add up to more than kLargestSum is m raised and the block
// weighed again.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "ops/attention/amx/group.h"
#include "ops/attention/amx/products.h"
#include "ops/attention/cpu/power.cpu.h"

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

// A block of scores, tiles of 16 keys by 16 queries, [keys / 16][2], and where its weights go.
struct ScoreBlock {
  const float* scores;
  std::uint32_t* out;
  std::int64_t key, keys;  // which ones they are
};

// The logarithm of the weights of key `key`; of relu the score itself, and m is 0.
template <Weigh kind>
[[gnu::always_inline]] inline __m512 exponent(const TransposedGroup& g, const Lanes& n,
                                              __m512 score, __m512 factor, int key) noexcept {
  __m512 t = _mm512_fmsub_ps(score, factor, n.m);
  if constexpr (kind != Weigh::plain) {
    const __m512i at = _mm512_set1_epi32(key);
    const __mmask16 seen =
        _mm512_cmple_epi32_mask(n.first, at) & _mm512_cmplt_epi32_mask(at, n.last);
    if (kind == Weigh::anything && g.bias != nullptr) {
      const __m512i place = _mm512_maskz_sub_epi32(0xffff, at, n.number);
      const __m512 bias = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), seen, place, g.bias, 4);
      t = _mm512_fmadd_ps(bias, _mm512_set1_ps(g.relu ? 1.0f : static_cast<float>(kLog2E)), t);
    }
    t = _mm512_mask_mov_ps(minus_infinity(), seen, t);
  }
  return t;
}

// The factor on scores.
[[gnu::always_inline]] inline __m512 score_factor(const TransposedGroup& g) noexcept {
  return _mm512_set1_ps(g.scale * (g.relu ? 1.0f : static_cast<float>(kLog2E)));
}

// The weights of one block of scores, of sixteen queries at a time.
template <Weigh kind>
class Weights {
 public:
  Weights(const TransposedGroup& g, Lanes* lanes, const ScoreBlock& block)
      : g_(g),
        lanes_(lanes),
        b_(block),
        tiles_(static_cast<int>(block.keys / 16)),
        factor_(score_factor(g)) {}

  void run(int half) const noexcept {
    Lanes& n = lanes_[half];
    __m512 sum = _mm512_setzero_ps(), other = _mm512_setzero_ps();
    for (int tile = 0; tile < tiles_; ++tile) {
      std::uint32_t* to = b_.out + tile / 2 * 512 + half * 256 + tile % 2 * 128;
      for (int row = 0; row < 16; row += 2) {
        const __m512 w0 = weight(logarithm(n, half, tile, row));
        const __m512 w1 = weight(logarithm(n, half, tile, row + 1));
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
      for (int row = 0; row < 16; ++row) best = _mm512_max_ps(best, logarithm(n, half, tile, row));
    return best;
  }

 private:
  [[gnu::always_inline]] __m512 weight(__m512 t) const noexcept {
    if (kind == Weigh::anything && g_.relu) return _mm512_max_ps(_mm512_setzero_ps(), t);
    return power_of_two(t);
  }
  [[gnu::always_inline]] __m512 logarithm(const Lanes& n, int half, int tile,
                                          int row) const noexcept {
    return exponent<kind>(g_, n, _mm512_load_ps(b_.scores + (tile * 2 + half) * 256 + row * 16),
                          factor_, static_cast<int>(b_.key) + tile * 16 + row);
  }

  const TransposedGroup& g_;
  Lanes* lanes_;
  const ScoreBlock& b_;
  int tiles_;
  __m512 factor_;
};

// The same, two keys at a time, for all 32 queries: interleaved with the products of other blocks.
// `kRate` is the number of keys processed after two products. Everything is inlined, so that it
// stays in registers.
template <Weigh kind, int kRate>
class WeighBetween : public InTurns<WeighBetween<kind, kRate>, kRate> {
 public:
  [[gnu::always_inline]] WeighBetween(const TransposedGroup& g, Lanes* lanes,
                                      const ScoreBlock& block)
      : g_(g),
        lanes_(lanes),
        low_(lanes[0]),
        high_(lanes[1]),
        factor_(score_factor(g)),
        scores_(block.scores),
        out_(block.out),
        first_(static_cast<int>(block.key)),
        keys_(static_cast<std::size_t>(block.keys)) {
    low_.block_sum = high_.block_sum = _mm512_setzero_ps();
  }

  // The remaining keys.
  [[gnu::always_inline]] void finish() noexcept {
    while (at_ < keys_) step();
    lanes_[0].block_sum = low_.block_sum;
    lanes_[1].block_sum = high_.block_sum;
  }

 private:
  friend class InTurns<WeighBetween, kRate>;
  [[gnu::always_inline]] void step() noexcept {
    if (at_ == keys_) return;
    // Tiles of 16 keys are 512 numbers apart, pairs of them 512 words.
    const float* from = scores_ + 16 * (at_ + at_ / 16 * 16);
    std::uint32_t* to = out_ + 8 * (at_ + at_ / 32 * 32);
    weigh(low_, from, to);
    weigh(high_, from + 256, to + 256);
    at_ += 2;
  }
  [[gnu::always_inline]] void weigh(Lanes& n, const float* from, std::uint32_t* to) noexcept {
    const int key = first_ + static_cast<int>(at_);
    const __m512 even = power_of_two(exponent<kind>(g_, n, _mm512_load_ps(from), factor_, key));
    const __m512 odd =
        power_of_two(exponent<kind>(g_, n, _mm512_load_ps(from + 16), factor_, key + 1));
    n.block_sum = _mm512_add_ps(n.block_sum, _mm512_add_ps(even, odd));
    _mm512_store_si512(to, words(even, odd));
  }

  const TransposedGroup& g_;
  Lanes* lanes_;
  Lanes low_, high_;
  __m512 factor_;
  const float* scores_;
  std::uint32_t* out_;
  int first_;
  std::size_t keys_, at_ = 0;
};

}  // namespace heddle::cpu::amx
