// Picking and adding by index: along any dimension, and by whole rows.
#include "backend/cpu/row_index.h"
#include "base/divide.h"
#include "ops/gather/gather.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace gather_detail {

// A bundle of lines along the dimension of the index: `count` of them, adjacent in memory, that no
// other task touches.
struct Lines {
  std::int64_t index = 0;  // offset of the first element, in the index and in the indexed array
  std::int64_t indexed = 0;
  std::int64_t index_step = 0, indexed_step = 0;  // along the dimension
  std::int64_t length = 0, count = 0;
};

// Calls body(lines) for bundles that together are all lines, on all threads.
template <class Body>
HWY_INLINE void for_lines(const Shape& shape, const Strides& strides, int dim, Body body) {
  constexpr std::int64_t kBundle = 256;
  const int last = shape.rank() - 1;
  std::int64_t index_strides[kMaxRank];
  std::int64_t elements = 1;
  for (int i = last; i >= 0; --i) {
    index_strides[i] = elements;
    elements *= shape[i];
  }
  if (elements == 0) return;
  const std::int64_t inner = dim == last ? 1 : shape[last];
  const std::int64_t cuts = ceil_div(inner, kBundle);
  const std::int64_t outer = elements / shape[dim] / inner;
  const std::int64_t work = shape[dim] * (inner < kBundle ? inner : kBundle);
  parallel_ranges(outer * cuts, 1 + kGrain / work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      Lines lines;
      std::int64_t at = job / cuts;
      for (int i = last; i >= 0; --i) {
        if (i == dim || (i == last && dim != last)) continue;
        lines.index += at % shape[i] * index_strides[i];
        lines.indexed += at % shape[i] * strides[i];
        at /= shape[i];
      }
      const std::int64_t column = job % cuts * kBundle;
      lines.index += column;
      lines.indexed += column;
      lines.index_step = index_strides[dim];
      lines.indexed_step = strides[dim];
      lines.length = shape[dim];
      lines.count = inner - column < kBundle ? inner - column : kBundle;
      body(lines);
    }
  });
}

inline void gather(const GatherArgs& a) noexcept {
  for_index(a.index_dtype, [&](auto index) {
    const auto* ids = static_cast<const decltype(index)*>(a.index);
    for_storage(a.dtype, [&](auto s) {
      using S = decltype(s);
      const auto* x = static_cast<const S*>(a.x);
      auto* y = static_cast<S*>(a.y);
      for_lines(a.shape, a.strides, a.dim, [&](const Lines& lines) {
        for (std::int64_t l = 0; l < lines.length; ++l) {
          const std::int64_t to = lines.index + l * lines.index_step;
          for (std::int64_t j = 0; j < lines.count; ++j)
            y[to + j] = x[lines.indexed + ids[to + j] * lines.indexed_step + j];
        }
      });
    });
  });
}

template <class S>
HWY_INLINE Compute<S> widened(S v) {
  if constexpr (std::is_same_v<S, bf16>)
    return v.to_float();
  else
    return v;
}

inline void scatter_add(const ScatterAddArgs& a) noexcept {
  for_index(a.index_dtype, [&](auto index) {
    const auto* ids = static_cast<const decltype(index)*>(a.index);
    for_storage(a.dtype, [&](auto s) {
      using S = decltype(s);
      const auto* source = static_cast<const S*>(a.source);
      auto* sum = static_cast<Compute<S>*>(a.sum);
      for_lines(a.shape, a.strides, a.dim, [&](const Lines& lines) {
        for (std::int64_t l = 0; l < lines.length; ++l) {
          const std::int64_t from = lines.index + l * lines.index_step;
          for (std::int64_t j = 0; j < lines.count; ++j)
            sum[lines.indexed + ids[from + j] * lines.indexed_step + j] +=
                widened(source[from + j]);
        }
      });
    });
  });
}

inline void index_select(const IndexSelectArgs& a) noexcept {
  for_index(a.index_dtype, [&](auto index) {
    using I = decltype(index);
    for_storage(a.dtype, [&](auto s) {
      using S = decltype(s);
      pick_rows(static_cast<const S*>(a.x), static_cast<const I*>(a.index), static_cast<S*>(a.y),
                a.count, a.width, a.stream);
    });
  });
}

inline void index_add(const IndexAddArgs& a) noexcept {
  for_index(a.index_dtype, [&](auto index) {
    group_by_row(static_cast<const decltype(index)*>(a.index), a.count, a.rows, a.starts, a.order);
  });
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    sum_grouped_rows(RowSum<S, S>{static_cast<const S*>(a.source), static_cast<const S*>(a.x),
                                  static_cast<S*>(a.y), a.rows, a.width, a.starts, a.order});
  });
}

}  // namespace gather_detail

const GatherKernels gather_kernels{gather_detail::gather, gather_detail::scatter_add,
                                   gather_detail::index_select, gather_detail::index_add};

}  // namespace heddle::cpu::HEDDLE_ISA
