// Rows picked by an index, and rows summed by one, for kernels (see simd.h).
#pragma once

#include "backend/cpu/simd.h"
#include "base/divide.h"

namespace heddle::cpu::HEDDLE_ISA {

// Calls f with a value of the index type.
template <class F>
HWY_INLINE void for_index(DType dtype, F f) {
  if (dtype == DType::i32) return f(std::int32_t{});
  return f(std::int64_t{});
}

// Calls f(a, b) for the pairs of storage types that compute alike: f32 and bf16 in any combination,
// f64 with itself.
template <class F>
HWY_INLINE void for_storage_pair(DType first, DType second, F f) {
  if (first == DType::f64) return f(double{}, double{});
  for_storage(first, [&](auto a) {
    if constexpr (!std::is_same_v<decltype(a), double>) {
      if (second == DType::bf16)
        f(a, bf16{});
      else
        f(a, float{});
    }
  });
}

// How many rows of a width a thread takes at a time: many, because the first ones of a piece are
// not prefetched in time.
HWY_INLINE std::int64_t pick_grain(std::int64_t width) { return 1 + 4 * kGrain / (width + 1); }

// y = x for a row of `width` elements, while `later`, a row to come, is prefetched. The caller ends
// its streams with hwy::FlushStream(): a fence after each row would wait for the row to be written.
template <bool Stream, class X, class Y>
HWY_INLINE void copy_row(const X* x, const X* later, Y* y, std::int64_t width) {
  const Tag<X> d;
  for_vectors(
      d, width,
      [&](std::int64_t i) {
        // Into the second cache: the first one has too few misses at a time to hide the memory.
        __builtin_prefetch(later + i, 0, 2);
        if constexpr (Stream)
          stream(d, load(d, x + i), y + i);
        else
          store(d, load(d, x + i), y + i);
      },
      [&](std::int64_t i, std::int64_t rest) { store_n(d, load_n(d, x + i, rest), y + i, rest); });
}

// y[i] = x[ids[i]], rows of `width` elements; where `stream` is set and rows begin on cache lines,
// past the caches. Rows may be anywhere, so the hardware cannot predict the next ones: they are
// prefetched about 12 KB before their turn.
template <class X, class Y, class I>
HWY_INLINE void pick_rows(const X* x, const I* ids, Y* y, std::int64_t count, std::int64_t width,
                          bool stream) {
  const auto row_bytes = static_cast<std::size_t>(width) * sizeof(Y);
  const bool past = stream && on_cache_line(y) && row_bytes % 64 == 0;
  const std::int64_t ahead =
      1 + 12288 / (1 + width * static_cast<std::int64_t>(sizeof(X)));  // rows
  parallel_ranges(count, pick_grain(width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const X* row = x + static_cast<std::int64_t>(ids[i]) * width;
      const X* later =
          i + ahead < last ? x + static_cast<std::int64_t>(ids[i + ahead]) * width : row;
      if (past)
        copy_row<true>(row, later, y + i * width, width);
      else
        copy_row<false>(row, later, y + i * width, width);
    }
    if (past) hwy::FlushStream();
  });
}

// Sorts the places 0..count by their id, keeping the order of equal ones: those with id r end up in
// order[starts[r]] .. order[starts[r + 1]]. starts has rows + 2 numbers.
template <class I>
HWY_INLINE void group_by_row(const I* ids, std::int64_t count, std::int64_t rows,
                             std::int64_t* starts, std::int64_t* order) {
  for (std::int64_t r = 0; r < rows + 2; ++r) starts[r] = 0;
  for (std::int64_t i = 0; i < count; ++i) ++starts[ids[i] + 2];
  for (std::int64_t r = 2; r < rows + 2; ++r) starts[r] += starts[r - 1];
  // starts[r + 1] is where r begins; placing moves it to where r ends.
  for (std::int64_t i = 0; i < count; ++i) order[starts[ids[i] + 1]++] = i;
}

// out[r] = base[r] + sum of x[i] over the places i of row r, in their order. base may be null:
// zeros. It may be out itself: then rows without places are not touched, and base is added last, as
// if the sums had been made first and then added to it.
template <class X, class Out>
struct RowSum {
  const X* x;
  const Out* base;
  Out* out;
  std::int64_t rows, width;
  const std::int64_t* starts;
  const std::int64_t* order;
};

template <class X, class Out>
HWY_INLINE void sum_group(const RowSum<X, Out>& s, std::int64_t row, std::int64_t begin,
                          std::int64_t end) {
  const Tag<X> d;
  const std::int64_t n = lanes(d);
  const std::int64_t* first = s.order + s.starts[row];
  const std::int64_t* last = s.order + s.starts[row + 1];
  const bool in_place = s.base == s.out;
  if (in_place && first == last) return;
  const Out* base = s.base == nullptr || in_place ? nullptr : s.base + row * s.width;
  Out* out = s.out + row * s.width;
  const auto start = [&](std::int64_t i) {
    return base == nullptr ? hn::Zero(d) : load(d, base + i);
  };
  const auto finish = [&](auto sum, std::int64_t i) {
    store(d, in_place ? hn::Add(load(d, out + i), sum) : sum, out + i);
  };
  std::int64_t i = begin;
  for (; i + 4 * n <= end; i += 4 * n) {
    auto a = start(i), b = start(i + n), c = start(i + 2 * n), e = start(i + 3 * n);
    for (const std::int64_t* at = first; at < last; ++at) {
      const X* p = s.x + *at * s.width + i;
      a = hn::Add(a, load(d, p));
      b = hn::Add(b, load(d, p + n));
      c = hn::Add(c, load(d, p + 2 * n));
      e = hn::Add(e, load(d, p + 3 * n));
    }
    finish(a, i);
    finish(b, i + n);
    finish(c, i + 2 * n);
    finish(e, i + 3 * n);
  }
  for (; i < end; i += n) {
    const std::int64_t rest = end - i < n ? end - i : n;
    auto a = base == nullptr ? hn::Zero(d) : load_n(d, base + i, rest);
    for (const std::int64_t* at = first; at < last; ++at)
      a = hn::Add(a, load_n(d, s.x + *at * s.width + i, rest));
    if (in_place) a = hn::Add(load_n(d, out + i, rest), a);
    store_n(d, a, out + i, rest);
  }
}

// In parallel over blocks of rows and stripes of columns: each element is summed by one thread, in
// an order that only the index decides.
template <class X, class Out>
HWY_INLINE void sum_grouped_rows(const RowSum<X, Out>& s) {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kColumns = 256;
  const std::int64_t stripes = ceil_div(s.width, kColumns);
  const std::int64_t blocks = ceil_div(s.rows, kRows);
  parallel_chunks(blocks * stripes, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk % stripes * kColumns;
    const std::int64_t end = begin + kColumns < s.width ? begin + kColumns : s.width;
    const std::int64_t first = chunk / stripes * kRows;
    const std::int64_t last = first + kRows < s.rows ? first + kRows : s.rows;
    for (std::int64_t row = first; row < last; ++row) sum_group(s, row, begin, end);
  });
}

}  // namespace heddle::cpu::HEDDLE_ISA
