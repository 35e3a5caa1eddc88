// The addresses of attention's operands and the keys its rows see, for the kernels.
#pragma once

#include "backend/cpu/activations.h"
#include "base/divide.h"
#include "ops/attention/cpu/tile.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

template <class T>
void zero(T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = T{};
}

// Hands out pieces of a thread's scratch, each aligned to 64 bytes.
class Scratch {
 public:
  explicit Scratch(const AttentionArgs& a)
      : next_(static_cast<char*>(a.scratch) + thread_index() * a.scratch_bytes) {}
  template <class T>
  T* take(std::int64_t count) {
    char* piece = next_;
    next_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), 64);
    return reinterpret_cast<T*>(piece);
  }

 private:
  char* next_;
};

// A block of queries of one head, and the place of its rows.
struct Rows {
  std::int64_t batch, head, first, count;

  Rows part(std::int64_t from, std::int64_t most) const {
    return {batch, head, first + from, smaller(most, count - from)};
  }
};

// Columns of a tile of scores; empty when begin >= end.
struct Range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

template <class S>
class Problem {
 public:
  using C = Compute<S>;
  using U = Unit<S>;

  explicit Problem(const AttentionArgs& args)
      : a(args),
        s(args.shape),
        depth(ceil_div(s.width, kPair<S>)),
        value_depth(ceil_div(s.value_width, kPair<S>)),
        keys(round_up(s.places(), kPad)),
        on_tiles(kTilePairs<S> && cpu::on_tiles(args)),
        group_rows(on_tiles ? kAmxRows : kTileRows) {}

  const AttentionArgs& a;
  const AttentionShape& s;
  const std::int64_t depth, value_depth;  // D and E in units
  const std::int64_t keys;                // padded, and with places before the first
  // Whether products are made on AMX tiles. A is row-major then, wherever it is packed, and the
  // operands of the gradients of keys and values are transposed (gradients.cpu.h).
  const bool on_tiles;
  const std::int64_t group_rows;  // that are multiplied together

  std::int64_t group() const { return s.heads / s.key_heads; }
  std::int64_t key_head(std::int64_t head) const { return head / group(); }
  Rows rows(std::int64_t batch, std::int64_t head, std::int64_t block,
            std::int64_t size = kQueryBlock) const {
    return {batch, head, block * size, smaller(size, s.queries - block * size)};
  }

  // ---- where things lie ---- Keys are counted from the first place on.
  const S* q(const Rows& r, std::int64_t row) const {
    return static_cast<const S*>(a.q) + r.batch * a.q_strides.batch +
           (r.first + row) * a.q_strides.row + r.head * a.q_strides.head;
  }
  std::int64_t row_of(std::int64_t key) const {
    // A place before the first key is hidden from all: any row does.
    const std::int64_t row = a.first_row + (key > s.shift ? key - s.shift : 0);
    return row < s.keys ? row : row - s.keys;
  }
  const S* k(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return key_row(a.k, a.k_strides, batch, head, key);
  }
  const S* v(std::int64_t batch, std::int64_t head, std::int64_t key) const {
    return key_row(a.v, a.v_strides, batch, head, key);
  }
  // Offset of a row of y, and of everything else that is [B, Tq, H, width].
  std::int64_t dense_row(const Rows& r, std::int64_t row, std::int64_t width) const {
    return ((r.batch * s.queries + r.first + row) * s.heads + r.head) * width;
  }
  S* y(const Rows& r, std::int64_t row) const {
    return static_cast<S*>(a.y) + dense_row(r, row, s.value_width);
  }
  std::int64_t row_number(const Rows& r) const {
    return (r.batch * s.heads + r.head) * s.queries + r.first;
  }
  C* row_sum(const Rows& r) const { return static_cast<C*>(a.row_sum) + row_number(r); }
  // m of each row; Σ 2^(s - m) of the same row follows one whole array of rows later.
  C* row_parts(const Rows& r) const { return static_cast<C*>(a.row_parts) + row_number(r); }
  std::int64_t all_rows() const { return s.batch * s.heads * s.queries; }

  // One key head's share of what is packed.
  template <class T>
  T* of_key_head(void* base, std::int64_t size, std::int64_t batch, std::int64_t head) const {
    return static_cast<T*>(base) + (batch * s.key_heads + head) * size;
  }
  // Kᵀ or Vᵀ: panels of keys, from key `from` on (a multiple of the panel).
  Panels<S> key_columns(void* base, std::int64_t steps, std::int64_t batch, std::int64_t head,
                        std::int64_t from) const {
    return {of_key_head<U>(base, keys * steps, batch, head) + from * steps, steps * kPanel<S>};
  }
  // V or K: panels of columns, from key `from` on (whole pairs).
  Panels<S> key_rows(void* base, std::int64_t width, std::int64_t batch, std::int64_t head,
                     std::int64_t from) const {
    const std::int64_t steps = keys / kPair<S>;
    return {of_key_head<U>(base, steps * round_up(width, kPad), batch, head) +
                from / kPair<S> * kPanel<S>,
            steps * kPanel<S>};
  }

  // Entry of the bias for (query row `row` of the block, key 0).
  const C* bias_row(const Rows& r, std::int64_t row) const {
    if (a.relative_bias == nullptr) return nullptr;
    const std::int64_t length = s.queries + s.keys - 1;
    return static_cast<const C*>(a.relative_bias) + r.head * length + s.queries - 1 -
           (r.first + row) - s.shift;
  }

  // A row of the masks of pairs, from key 0 on; null: none.
  const C* additive_row(const Rows& r, std::int64_t row) const {
    if (a.additive_mask == nullptr) return nullptr;
    return static_cast<const C*>(a.additive_mask) + pair_row(a.additive_strides, r, row) - s.shift;
  }
  const std::uint8_t* allowed_row(const Rows& r, std::int64_t row) const {
    if (a.allowed == nullptr) return nullptr;
    return a.allowed + pair_row(a.allowed_strides, r, row) - s.shift;
  }
  static std::int64_t pair_row(const RowStrides& stride, const Rows& r, std::int64_t row) {
    return r.batch * stride.batch + r.head * stride.head + (r.first + row) * stride.row;
  }

  // ---- products on AMX tiles ----
  // A group's rows of A, row-major, times B.
  void on_tiles_product(const U* left, std::int64_t row, const Panels<S>& b, std::int64_t steps,
                        std::int64_t columns, const Sums<C>& out) const {
    if constexpr (kTilePairs<S>)
      a.tiles.small_product({.a = left,
                             .a_row = row,
                             .b = b.data,
                             .b_step = kPanel<S>,
                             .b_panel = b.stride,
                             .rows = kAmxRows,
                             .steps = steps,
                             .columns = columns,
                             .c = out.data,
                             .c_row = out.stride,
                             .add = out.add});
  }

  // ---- what a row sees ----
  // Of the keys of a sequence, those that are read at all. A weight of zero does not hide a NaN.
  std::int64_t end_of_keys(std::int64_t batch) const { return s.shift + a.end_key[batch]; }
  Range visible(const Rows& r, std::int64_t row) const {
    const std::int64_t at = r.batch * s.queries + r.first + row;
    return {s.shift + a.first_key[at], s.shift + a.last_key[at]};
  }
  // The keys that any of the rows sees.
  Range span(const Rows& r) const {
    Range all{keys, 0};
    for (std::int64_t i = 0; i < r.count; ++i) {
      const Range one = visible(r, i);
      if (one.empty()) continue;
      all = {smaller(all.begin, one.begin), larger(all.end, one.end)};
    }
    return all;
  }

 private:
  const S* key_row(const void* base, const RowStrides& stride, std::int64_t batch,
                   std::int64_t head, std::int64_t key) const {
    return static_cast<const S*>(base) + batch * stride.batch + row_of(key) * stride.row +
           head * stride.head;
  }
};

// The part of `keys` in the tile that begins with key `origin`, as its columns.
inline Range columns(const Range& keys, std::int64_t origin, std::int64_t size) {
  return {larger(keys.begin - origin, 0), smaller(keys.end - origin, size)};
}

// The same in whole panels: what is computed.
template <class S>
Range whole_panels(const Range& c) {
  if (c.empty()) return {0, 0};
  return {c.begin / kPanel<S> * kPanel<S>, round_up(c.end, kPanel<S>)};
}

// Powers of two are what the weights of a softmax are computed by.
inline constexpr double kLog2E = 1.4426950408889634;

// The factor that turns scores into exponents of two. Those of masked pairs are that already
// (mask_pairs()).
inline double to_exponents(const AttentionArgs& a) {
  if (a.pairs) return 1;
  return plain_scores(a) ? a.scale * kLog2E : kLog2E;
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
