// The products of attention transposed, for a policy of tiles (tiles.h, emulated_tiles.h). Other
// work goes between them: `between` is called after every product, one() and two() in turns.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "ops/attention/amx/group.h"

namespace heddle::cpu::amx {

inline constexpr std::int64_t kTransposedBlock = 32;  // keys of 2 × 2 tiles
inline constexpr std::int64_t kBlockScores = kTransposedBlock * kTransposedQueries;
inline constexpr std::int64_t kBlockWords = kTransposedBlock / 2 * kTransposedQueries;
inline constexpr std::int64_t kTileWords = 256;

// Between products that nothing goes between.
struct NothingBetween {
  void one() const noexcept {}
  void two() const noexcept {}
};

// Work interleaved with products in steps of two keys, kRate keys after two products: a base of
// `Work`, whose step() does nothing once all are done.
template <class Work, int kRate>
class InTurns {
 public:
  [[gnu::always_inline]] void one() noexcept {
    if constexpr (kRate >= 4) step();
    if constexpr (kRate >= 8) step();
  }
  [[gnu::always_inline]] void two() noexcept {
    step();
    if constexpr (kRate >= 8) step();
  }

 private:
  [[gnu::always_inline]] void step() noexcept { static_cast<Work*>(this)->step(); }
};

// The keys that all queries of a group see.
struct SeenByAll {
  std::int64_t begin = 0, end;

  template <class Group>
  [[gnu::always_inline]] explicit SeenByAll(const Group& g) noexcept : end(g.keys) {
    for (std::int64_t i = 0; i < g.count; ++i) {
      begin = begin > g.first[i] ? begin : g.first[i];
      end = end < g.last[i] ? end : g.last[i];
    }
  }
  [[gnu::always_inline]] bool covers(std::int64_t first, std::int64_t last) const noexcept {
    return first >= begin && last <= end;
  }
};

// K and Qᵀ, or V and dYᵀ.
struct ScoreOperands {
  const std::uint32_t* rows;     // [keys][depth]
  const std::uint32_t* columns;  // [2][depth][16]: queries 16 at a time
  std::int64_t depth;            // words along the sum
};

// 32 columns of Vᵀ and the weights, or of Kᵀ and dSᵀ, along `blocks` blocks of 32 keys.
struct SumOperands {
  const std::uint32_t* left;  // [blocks][left_block], of which [32][16] are read
  std::int64_t left_block;
  const std::uint32_t* right;  // [blocks][2][16][16]
  std::int64_t blocks;
  bool add = true;  // to the contents of the sums
};

template <class T>
class TransposedProducts {
 public:
  // Scores of `keys` keys, a multiple of 32: tiles of 16 keys by 16 queries, [keys / 16][2].
  template <class Between>
  [[gnu::always_inline]] static void scores(const ScoreOperands& o, std::int64_t keys, float* out,
                                            Between& between) noexcept {
    compiler_barrier();
    if (o.depth == 32)
      strips_of_scores(o, keys, out, between);
    else
      for (std::int64_t key = 0; key < keys; key += kTransposedBlock)
        block_of_scores(o, key, out + key * kTransposedQueries, between);
    compiler_barrier();
  }

  // The sums of 32 columns by all queries, [2][2][16][16].
  template <class Between>
  [[gnu::always_inline]] static void add(const SumOperands& o, float* sums,
                                         Between& between) noexcept {
    const auto at = [=](std::int64_t step) {
      return Operands{o.left + step * o.left_block, o.right + step * kBlockWords,
                      o.right + step * kBlockWords + kTileWords, 16};
    };
    if (o.add)
      T::load_c(sums);
    else
      T::zero_c();
    multiply(o.blocks, at, between);
    T::store_c(sums);
  }

 private:
  struct Operands {
    const std::uint32_t *a, *b0, *b1;
    std::int64_t a_row;  // words; B is whole tiles
  };

  // Heads of 64: all of Qᵀ stays in four tiles.
  template <class Between>
  [[gnu::always_inline]] static void strips_of_scores(const ScoreOperands& o, std::int64_t keys,
                                                      float* out, Between& between) noexcept {
    const std::uint32_t *q0 = o.columns, *q1 = o.columns + o.depth * 16;
    T::load_kept(q0, q1, q0 + kTileWords, q1 + kTileWords);
    for (std::int64_t key = 0; key < keys; key += 16)
      T::strip(o.rows + key * 32, 128, out + key * kTransposedQueries, between);
  }

  // 32 keys by all queries.
  template <class Between>
  [[gnu::always_inline]] static void block_of_scores(const ScoreOperands& o, std::int64_t key,
                                                     float* out, Between& between) noexcept {
    const std::uint32_t *k = o.rows + key * o.depth, *q = o.columns;
    const std::int64_t depth = o.depth;
    const auto at = [=](std::int64_t step) {
      return Operands{k + step * 16, q + step * kTileWords, q + depth * 16 + step * kTileWords,
                      depth};
    };
    T::zero_c();
    multiply(depth / 16, at, between);
    T::store_c(out);
  }

  // Steps of 2 × 2 tiles; every tile is loaded again right after its last use.
  template <class At, class Between>
  [[gnu::always_inline]] static void multiply(std::int64_t steps, At at,
                                              Between& between) noexcept {
    Operands o = at(0);
    const auto a_row = static_cast<std::size_t>(o.a_row) * 4;
    T::load_a0(o.a, a_row);
    T::load_b0(o.b0);
    T::load_b1(o.b1);
    T::load_a1(o.a + 16 * o.a_row, a_row);
    for (std::int64_t step = 1; step < steps; ++step) {
      o = at(step);
      T::dot_00();
      between.one();
      T::dot_01();
      T::load_a0(o.a, a_row);
      between.two();
      T::dot_10();
      T::load_b0(o.b0);
      between.one();
      T::dot_11();
      T::load_b1(o.b1);
      T::load_a1(o.a + 16 * o.a_row, a_row);
      between.two();
    }
    T::dot_00();
    between.one();
    T::dot_01();
    between.two();
    T::dot_10();
    between.one();
    T::dot_11();
    between.two();
  }
};

}  // namespace heddle::cpu::amx
