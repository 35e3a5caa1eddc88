// A group of queries over its keys, for a policy of tiles (tiles.h, emulated_tiles.h).
//
// Keys are taken kTransposedKeys at a time, so that their scores stay in L1. While a block is
// weighed by the vector units, the tiles make the scores of the next one and add the values of
// those before: both kinds of instructions go one between the other. The values of two blocks are
// added together, since the sums Oᵀ are loaded and stored each time, which costs as much as the
// products of one block; half of the columns go with each of the next two blocks.
#pragma once

#include "base/divide.h"
#include "ops/attention/amx/products.h"
#include "ops/attention/amx/weights.h"

namespace heddle::cpu::amx {

template <class T>
class TransposedRunner {
 public:
  explicit TransposedRunner(const TransposedGroup& g) noexcept : g_(g), seen_(g) {
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
  }

  void run() noexcept {
    if (g_.keys == 0) return;
    T::configure_once();
    NothingBetween nothing;
    make_scores(0, nothing);
    for (std::int64_t j = 0; j < blocks(); ++j) {
      if (j == 0) begin_references();
      weigh_block(j);
    }
    add_all_values(blocks());
    for (int h = 0; h < 2; ++h) {
      _mm512_storeu_ps(g_.m + h * 16, lanes_[h].m);
      _mm512_storeu_ps(g_.l + h * 16, lanes_[h].l);
    }
  }

 private:
  std::int64_t blocks() const noexcept { return ceil_div(g_.keys, kTransposedKeys); }
  // Keys of block j.
  std::int64_t keys(std::int64_t j) const noexcept {
    const std::int64_t rest = g_.keys - j * kTransposedKeys;
    return rest < kTransposedKeys ? rest : kTransposedKeys;
  }
  float* scores(std::int64_t j) const noexcept { return g_.scores + j % 2 * kTransposedScores; }
  // Of two pairs of blocks: one is added while the other is weighed.
  std::uint32_t* weights(std::int64_t j) const noexcept {
    return g_.weights + j / 2 % 2 * kTransposedWords +
           j % 2 * (kTransposedKeys / 2 * kTransposedQueries);
  }
  ScoreBlock block(std::int64_t j) const noexcept {
    return {scores(j), weights(j), j * kTransposedKeys, keys(j)};
  }

  // ---- weights ----
  Weigh kind_of(std::int64_t j) const noexcept {
    if (g_.relu || g_.bias != nullptr) return Weigh::anything;
    const std::int64_t begin = j * kTransposedKeys, end = begin + keys(j);
    return seen_.covers(begin, end) ? Weigh::plain : Weigh::masked;
  }
  void weigh_block(std::int64_t j) noexcept {
    switch (kind_of(j)) {
      case Weigh::plain: return weigh_as<Weigh::plain>(j);
      case Weigh::masked: return weigh_as<Weigh::masked>(j);
      case Weigh::anything: return weigh_as<Weigh::anything>(j);
    }
  }

  // Before anything is seen every sum would be too large.
  void begin_references() noexcept {
    if (g_.relu) return;
    const ScoreBlock b = block(0);
    for (int h = 0; h < 2; ++h) {
      const __mmask16 fresh =
          _mm512_cmp_ps_mask(lanes_[h].m, _mm512_set1_ps(kNothingSeen), _CMP_LE_OQ);
      if (fresh == 0) continue;
      if (g_.bias != nullptr)
        raise(Weights<Weigh::anything>(g_, lanes_, b), h, fresh, 0);
      else
        raise(Weights<Weigh::masked>(g_, lanes_, b), h, fresh, 0);
    }
  }

  template <Weigh kind>
  void weigh_as(std::int64_t j) noexcept {
    const ScoreBlock b = block(j);
    const Weights<kind> w(g_, lanes_, b);
    if constexpr (kind == Weigh::anything) {
      NothingBetween nothing;
      products_beside(j, nothing);
      for (int h = 0; h < 2; ++h) w.run(h);
    } else if (g_.depth + g_.value_width / 2 >= 96) {
      weigh_between<kind, 2>(j, b);
    } else if (g_.depth + g_.value_width / 2 >= 48) {
      weigh_between<kind, 4>(j, b);
    } else {
      weigh_between<kind, 8>(j, b);
    }
    const float limit = g_.relu ? __builtin_inff() : kLargestSum;
    for (int h = 0; h < 2; ++h) {
      Lanes& n = lanes_[h];
      const __mmask16 large = _mm512_cmp_ps_mask(n.block_sum, _mm512_set1_ps(limit), _CMP_GT_OQ);
      if (large != 0) {
        raise(w, h, large, j);
        w.run(h);
      }
      n.l = _mm512_add_ps(n.l, n.block_sum);
    }
  }

  template <Weigh kind, int kRate>
  void weigh_between(std::int64_t j, const ScoreBlock& b) noexcept {
    WeighBetween<kind, kRate> between(g_, lanes_, b);
    products_beside(j, between);
    between.finish();
  }

  // These queries' references become their largest score; what they have so far is divided by as
  // much.
  template <Weigh kind>
  [[gnu::noinline]] void raise(const Weights<kind>& w, int half, __mmask16 which,
                               std::int64_t j) noexcept {
    Lanes& n = lanes_[half];
    const __m512 top = _mm512_max_ps(n.m, w.largest(half));
    add_all_values(j);  // what is weighed with the old reference
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
  // The work of the tiles while block j is weighed.
  template <class Between>
  [[gnu::always_inline]] void products_beside(std::int64_t j, Between& between) noexcept {
    if (j + 1 < blocks()) make_scores(j + 1, between);
    if (j % 2 == 0) adding_ = j;  // both blocks of a pair are weighed
    const std::int64_t columns = g_.value_width / kTransposedBlock;
    add_values(adding_, j % 2 == 0 ? (columns + 1) / 2 : columns, between);
  }

  // Sᵀ of block j.
  template <class Between>
  [[gnu::always_inline]] void make_scores(std::int64_t j, Between& between) const noexcept {
    TransposedProducts<T>::scores({g_.k + j * kTransposedKeys * g_.depth, g_.q, g_.depth}, keys(j),
                                  scores(j), between);
  }

  // Oᵀ += Vᵀ · Pᵀ of the blocks [added_, end), up to column block `columns`.
  template <class Between>
  [[gnu::always_inline]] void add_values(std::int64_t end, std::int64_t columns,
                                         Between& between) noexcept {
    const std::int64_t first = added_ * kTransposedKeys;
    const std::int64_t last = end * kTransposedKeys < g_.keys ? end * kTransposedKeys : g_.keys;
    if (first >= last) return;
    compiler_barrier();
    const std::uint32_t* p = weights(added_);
    const std::int64_t width = g_.value_width;
    for (; added_columns_ < columns; ++added_columns_) {
      const std::uint32_t* v = g_.v + first / 2 * width + added_columns_ * kTransposedBlock * 16;
      TransposedProducts<T>::add({v, width * 16, p, (last - first) / kTransposedBlock},
                                 g_.o + added_columns_ * kTransposedBlock * kTransposedQueries,
                                 between);
    }
    compiler_barrier();
    if (columns < width / kTransposedBlock) return;
    added_ = end;
    added_columns_ = 0;
  }

  // Of all blocks before `end`: of those that were begun, then of the others.
  [[gnu::noinline]] void add_all_values(std::int64_t end) noexcept {
    NothingBetween nothing;
    if (added_ < adding_) add_values(adding_, g_.value_width / kTransposedBlock, nothing);
    add_values(end, g_.value_width / kTransposedBlock, nothing);
  }

  const TransposedGroup& g_;
  Lanes lanes_[2];
  SeenByAll seen_;
  // Blocks whose values are in the sums; of the next ones up to adding_ some columns are.
  std::int64_t added_ = 0, adding_ = 0, added_columns_ = 0;
};

}  // namespace heddle::cpu::amx
