// A group of queries over its keys, for a policy of tiles (tiles.h, emulated_tiles.h).
//
// Keys are taken kTurnedKeys at a time, so that their scores stay in L1. The values of two blocks
// are added together: the sums Oᵀ are loaded and stored each time, which costs as much as the
// products of one block. Weighing a block between the single products of another was slower by a
// sixth.
#pragma once

#include "ops/attention/amx/weights.h"

namespace heddle::cpu::amx {

inline constexpr std::int64_t kTurnedBlock = 32;  // keys of 2 × 2 tiles
inline constexpr std::int64_t kBlockScores = kTurnedBlock * kTurnedQueries;
inline constexpr std::int64_t kBlockWords = kTurnedBlock / 2 * kTurnedQueries;
inline constexpr std::int64_t kTileWords = 256;

template <class T>
class TurnedRunner {
 public:
  explicit TurnedRunner(const TurnedGroup& g) noexcept : g_(g), seen_end_(g.keys) {
    for (int h = 0; h < 2; ++h) {
      Lanes& n = lanes_[h];
      n.m = _mm512_loadu_ps(g.m + h * 16);
      n.l = _mm512_loadu_ps(g.l + h * 16);
      n.first = _mm512_loadu_si512(g.first + h * 16);
      n.last = _mm512_loadu_si512(g.last + h * 16);
      n.number = _mm512_maskz_add_epi32(
          0xffff, _mm512_set1_epi32(h * 16),
          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    }
    for (std::int64_t i = 0; i < g.count; ++i) {
      seen_begin_ = seen_begin_ > g.first[i] ? seen_begin_ : g.first[i];
      seen_end_ = seen_end_ < g.last[i] ? seen_end_ : g.last[i];
    }
  }

  void run() noexcept {
    if (g_.keys == 0) return;
    T::configure_once();
    const std::int64_t blocks = (g_.keys + kTurnedKeys - 1) / kTurnedKeys;
    for (std::int64_t j = 0; j < blocks; ++j) {
      make_scores(j);
      if (j % 2 == 0) add_values(j);  // both halves of the room for weights
      weigh_block(j);
    }
    add_values(blocks);
    for (int h = 0; h < 2; ++h) {
      _mm512_storeu_ps(g_.m + h * 16, lanes_[h].m);
      _mm512_storeu_ps(g_.l + h * 16, lanes_[h].l);
    }
  }

 private:
  // Keys of block j.
  std::int64_t keys(std::int64_t j) const noexcept {
    const std::int64_t rest = g_.keys - j * kTurnedKeys;
    return rest < kTurnedKeys ? rest : kTurnedKeys;
  }
  std::uint32_t* weights(std::int64_t j) const noexcept {
    return g_.weights + j % 2 * (kTurnedKeys / 2 * kTurnedQueries);
  }

  // ---- weights ----
  void weigh_block(std::int64_t j) noexcept {
    const std::int64_t begin = j * kTurnedKeys, end = begin + keys(j);
    if (g_.relu || g_.bias != nullptr)
      weigh_as<Weigh::anything>(j);
    else if (begin >= seen_begin_ && end <= seen_end_)
      weigh_as<Weigh::plain>(j);
    else
      weigh_as<Weigh::masked>(j);
  }

  template <Weigh kind>
  void weigh_as(std::int64_t j) noexcept {
    const float limit = g_.relu ? __builtin_inff() : kLargestSum;
    const Weights<kind> w(g_, lanes_, weights(j), j * kTurnedKeys, keys(j));
    for (int h = 0; h < 2; ++h) {
      Lanes& n = lanes_[h];
      // Before anything is seen every sum would be too large.
      const __mmask16 fresh = _mm512_cmp_ps_mask(n.m, _mm512_set1_ps(kNothingSeen), _CMP_LE_OQ);
      if (j == 0 && fresh != 0 && !g_.relu) raise(w, h, fresh, j);
      w.run(h);
      const __mmask16 large = _mm512_cmp_ps_mask(n.block_sum, _mm512_set1_ps(limit), _CMP_GT_OQ);
      if (large != 0) {
        raise(w, h, large, j);
        w.run(h);
      }
      n.l = _mm512_add_ps(n.l, n.block_sum);
    }
  }

  // These queries' references become their largest score; what they have so far is divided by as
  // much.
  template <Weigh kind>
  [[gnu::noinline]] void raise(const Weights<kind>& w, int half, __mmask16 which,
                               std::int64_t j) noexcept {
    Lanes& n = lanes_[half];
    const __m512 top = _mm512_max_ps(n.m, w.largest(half));
    add_values(j);  // what is weighed with the old reference
    const __m512 shrink =
        _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), which, power_of_two(_mm512_sub_ps(n.m, top)));
    n.m = _mm512_mask_mov_ps(n.m, which, top);
    n.l = _mm512_mul_ps(n.l, shrink);
    for (std::int64_t tile = half; tile < g_.value_width / 8; tile += 2)
      for (std::int64_t row = 0; row < 16; ++row) {
        float* o = g_.o + tile * 256 + row * 16;
        _mm512_store_ps(o, _mm512_mul_ps(_mm512_load_ps(o), shrink));
      }
  }

  // ---- the tiles ----
  // Sᵀ of block j.
  void make_scores(std::int64_t j) const noexcept {
    const std::int64_t count = keys(j);
    const std::uint32_t* k = g_.k + j * kTurnedKeys * g_.depth;
    compiler_barrier();
    if (g_.depth == 32)
      strips_of_scores(k, count);
    else
      for (std::int64_t key = 0; key < count; key += kTurnedBlock)
        block_of_scores(k + key * g_.depth, g_.scores + key * kTurnedQueries);
    compiler_barrier();
  }

  // Heads of 64: all of Qᵀ stays in four tiles.
  void strips_of_scores(const std::uint32_t* k, std::int64_t count) const noexcept {
    const std::uint32_t *q0 = g_.q, *q1 = g_.q + g_.depth * 16;
    T::load_kept(q0, q1, q0 + kTileWords, q1 + kTileWords);
    for (std::int64_t key = 0; key < count; key += 16)
      T::strip(k + key * g_.depth, static_cast<std::size_t>(g_.depth) * 4,
               g_.scores + key * kTurnedQueries);
  }

  struct Operands {
    const std::uint32_t *a, *b0, *b1;
    std::int64_t a_row;  // words; B is whole tiles
  };

  // 32 keys by all queries.
  void block_of_scores(const std::uint32_t* k, float* out) const noexcept {
    const auto at = [&](std::int64_t step) {
      return Operands{k + step * 16, g_.q + step * kTileWords,
                      g_.q + g_.depth * 16 + step * kTileWords, g_.depth};
    };
    T::zero_c();
    multiply(g_.depth / 16, at);
    T::store_c(out);
  }

  // Oᵀ += Vᵀ · Pᵀ of the blocks that are weighed, up to block `end`.
  void add_values(std::int64_t end) noexcept {
    const std::int64_t first = added_ * kTurnedKeys;
    const std::int64_t last = end * kTurnedKeys < g_.keys ? end * kTurnedKeys : g_.keys;
    const std::uint32_t* p = weights(added_);
    added_ = end;
    if (first >= last) return;
    compiler_barrier();
    const std::uint32_t* v = g_.v + first / 2 * g_.value_width;
    for (std::int64_t x = 0; x < g_.value_width; x += kTurnedBlock) {
      const auto at = [&](std::int64_t step) {
        return Operands{v + (step * g_.value_width + x) * 16, p + step * kBlockWords,
                        p + step * kBlockWords + kTileWords, 16};
      };
      T::load_c(g_.o + x * kTurnedQueries);
      multiply((last - first) / kTurnedBlock, at);
      T::store_c(g_.o + x * kTurnedQueries);
    }
    compiler_barrier();
  }

  // Steps of 2 × 2 tiles; every tile is loaded again right after its last use.
  template <class At>
  [[gnu::always_inline]] static void multiply(std::int64_t steps, At at) noexcept {
    Operands o = at(0);
    const auto a_row = static_cast<std::size_t>(o.a_row) * 4;
    T::load_a0(o.a, a_row);
    T::load_b0(o.b0);
    T::load_b1(o.b1);
    T::load_a1(o.a + 16 * o.a_row, a_row);
    for (std::int64_t step = 1; step < steps; ++step) {
      o = at(step);
      T::dot_00();
      T::dot_01();
      T::load_a0(o.a, a_row);
      T::dot_10();
      T::load_b0(o.b0);
      T::dot_11();
      T::load_b1(o.b1);
      T::load_a1(o.a + 16 * o.a_row, a_row);
    }
    T::dot_00();
    T::dot_01();
    T::dot_10();
    T::dot_11();
  }

  const TurnedGroup& g_;
  Lanes lanes_[2];
  std::int64_t seen_begin_ = 0, seen_end_;  // what all queries see
  std::int64_t added_ = 0;                  // blocks whose values are in the sums
};

}  // namespace heddle::cpu::amx
