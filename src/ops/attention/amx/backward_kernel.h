// A group of queries over a block of keys, backward, for a policy of tiles (tiles.h,
// emulated_tiles.h). While a piece of the keys is weighed by the vector units, the tiles make S and
// dP of the next one: both kinds of instructions go one between the other.
#pragma once

#include "ops/attention/amx/backward.h"
#include "ops/attention/amx/products.h"
#include "ops/attention/amx/weights.h"

namespace heddle::cpu::amx {

// Sixteen queries.
struct BackwardLanes {
  __m512 row_sum, delta;
  __m512i first, last;  // keys they see
};

// A piece of scores, tiles of 16 keys by 16 queries, [keys / 16][2], and where its weights go.
struct BackwardScores {
  const float *scores, *dp;
  std::uint32_t *weights, *ds;  // rows of words
  std::uint32_t* ds_words;      // [keys / 32][2][16][16]
  int key;                      // number of the first
};

// Between the products of one block of dQ: prefetches the next one, which follows it, into L1. The
// first of a group was prefetched by the group before.
class BringInSums {
 public:
  explicit BringInSums(const float* next) noexcept : next_(next) {}
  [[gnu::always_inline]] void one() noexcept { two_lines(); }
  [[gnu::always_inline]] void two() noexcept { two_lines(); }

 private:
  [[gnu::always_inline]] void two_lines() noexcept {
    _mm_prefetch(reinterpret_cast<const char*>(next_), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next_ + 16), _MM_HINT_T0);
    next_ += 32;
  }
  const float* next_;
};

// Weights and dS of two keys at a time, for all 32 queries. `kRate` is the number of keys processed
// after two products. Everything is inlined, so that it stays in registers.
template <bool Masked, int kRate>
class WeighBackward : public InTurns<WeighBackward<Masked, kRate>, kRate> {
 public:
  [[gnu::always_inline]] WeighBackward(const BackwardGroup& g, const BackwardLanes* lanes,
                                       const BackwardScores& s)
      : low_(lanes[0]),
        high_(lanes[1]),
        factor_(_mm512_set1_ps(g.factor)),
        low_words_(_mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                    39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0)),
        high_words_(_mm512_add_epi16(low_words_, _mm512_set1_epi16(16))),
        s_(s),
        row_(g.row) {}

  // The remaining keys.
  [[gnu::always_inline]] void finish() noexcept {
    while (at_ < kBackwardPiece) step();
  }

 private:
  friend class InTurns<WeighBackward, kRate>;
  [[gnu::always_inline]] void step() noexcept {
    if (at_ == kBackwardPiece) return;
    const __m512i even = weigh(at_), odd = weigh(at_ + 1);
    std::uint32_t* to = s_.ds_words + 8 * (at_ + at_ / 32 * 32);
    _mm512_store_si512(to, _mm512_permutex2var_epi16(even, low_words_, odd));
    _mm512_store_si512(to + 256, _mm512_permutex2var_epi16(even, high_words_, odd));
    at_ += 2;
  }

  // One key; returns its row of dS.
  [[gnu::always_inline]] __m512i weigh(std::int64_t at) const noexcept {
    // Tiles of 16 keys are 512 numbers apart.
    const std::int64_t place = 16 * (at + at / 16 * 16);
    const int key = s_.key + static_cast<int>(at);
    __m512 w0, w1, ds0, ds1;
    weigh_half(low_, place, key, w0, ds0);
    weigh_half(high_, place + 256, key, w1, ds1);
    const auto ds = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(ds1, ds0));
    _mm512_store_si512(s_.weights + at * row_,
                       reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(w1, w0)));
    _mm512_store_si512(s_.ds + at * row_, ds);
    return ds;
  }
  [[gnu::always_inline]] void weigh_half(const BackwardLanes& n, std::int64_t place, int key,
                                         __m512& w, __m512& ds) const noexcept {
    w = power_of_two(_mm512_fmsub_ps(_mm512_load_ps(s_.scores + place), factor_, n.row_sum));
    ds = _mm512_mul_ps(w, _mm512_sub_ps(_mm512_load_ps(s_.dp + place), n.delta));
    if constexpr (Masked) {
      const __m512i number = _mm512_set1_epi32(key);
      const __mmask16 seen =
          _mm512_cmple_epi32_mask(n.first, number) & _mm512_cmplt_epi32_mask(number, n.last);
      w = _mm512_maskz_mov_ps(seen, w);
      ds = _mm512_maskz_mov_ps(seen, ds);
    }
  }

  BackwardLanes low_, high_;
  __m512 factor_;
  __m512i low_words_, high_words_;  // where words of two rows of bf16 come from
  BackwardScores s_;
  std::int64_t row_, at_ = 0;
};

template <class T>
class BackwardRunner {
 public:
  explicit BackwardRunner(const BackwardGroup& g) noexcept : g_(g), seen_(g) {
    for (int h = 0; h < 2; ++h) {
      lanes_[h].row_sum = _mm512_loadu_ps(g.row_sum + h * 16);
      lanes_[h].delta = _mm512_loadu_ps(g.delta + h * 16);
      lanes_[h].first = _mm512_loadu_si512(g.first + h * 16);
      lanes_[h].last = _mm512_loadu_si512(g.last + h * 16);
    }
  }

  void run() noexcept {
    if (g_.keys == 0) return;
    T::configure_once();
    NothingBetween nothing;
    make_scores(0, nothing);
    for (std::int64_t key = 0; key < g_.keys; key += kBackwardPiece) {
      const bool all_seen = seen_.covers(key, key + kBackwardPiece);
      if (all_seen)
        weigh<false>(key);
      else
        weigh<true>(key);
    }
    add_to_dq();
  }

 private:
  float* scores(std::int64_t key) const noexcept {
    return g_.scores + key / kBackwardPiece % 2 * kBackwardScores;
  }
  static constexpr std::int64_t kDp = kBackwardPiece * kTransposedQueries;  // after the scores

  // S and dP of the piece from `key` on.
  template <class Between>
  [[gnu::always_inline]] void make_scores(std::int64_t key, Between& between) const noexcept {
    TransposedProducts<T>::scores({g_.k + key * g_.depth, g_.q, g_.depth}, kBackwardPiece,
                                  scores(key), between);
    TransposedProducts<T>::scores({g_.v + key * g_.value_depth, g_.dy, g_.value_depth},
                                  kBackwardPiece, scores(key) + kDp, between);
  }

  template <bool Masked>
  void weigh(std::int64_t key) const noexcept {
    const std::int64_t depth = g_.depth + g_.value_depth;
    if (depth >= 96)
      weigh_at_rate<Masked, 2>(key);
    else if (depth >= 48)
      weigh_at_rate<Masked, 4>(key);
    else
      weigh_at_rate<Masked, 8>(key);
  }
  template <bool Masked, int kRate>
  void weigh_at_rate(std::int64_t key) const noexcept {
    const float* from = scores(key);
    WeighBackward<Masked, kRate> between(
        g_, lanes_,
        {from, from + kDp, g_.weights + key * g_.row, g_.ds + key * g_.row, g_.ds_words + key * 16,
         static_cast<int>(key)});
    if (key + kBackwardPiece < g_.keys) make_scores(key + kBackwardPiece, between);
    between.finish();
  }

  // dQᵀ (+)= Kᵀ · dSᵀ
  void add_to_dq() const noexcept {
    const std::int64_t width = 2 * g_.depth;
    compiler_barrier();
    for (std::int64_t x = 0; x < width; x += kTransposedBlock) {
      float* sums = g_.dq + x * kTransposedQueries;
      BringInSums next(sums + kTransposedBlock * kTransposedQueries);
      TransposedProducts<T>::add(
          {g_.k_transposed + x * 16, width * 16, g_.ds_words, g_.keys / kTransposedBlock, g_.add},
          sums, next);
    }
    compiler_barrier();
  }

  const BackwardGroup& g_;
  BackwardLanes lanes_[2];
  SeenByAll seen_;
};

}  // namespace heddle::cpu::amx
