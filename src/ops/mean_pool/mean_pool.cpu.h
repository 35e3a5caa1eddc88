// y[b] = mean over the positions t of x[b, t] that count.
#include "base/divide.h"
#include "ops/mean_pool/mean_pool.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace mean_pool_detail {

// One sequence's mask.
struct Mask {
  DType dtype;
  const void* first;  // null: everything counts
  std::int64_t offset;

  HWY_INLINE bool counts(std::int64_t t) const {
    if (first == nullptr) return true;
    switch (dtype) {
      case DType::u8: return static_cast<const std::uint8_t*>(first)[offset + t] != 0;
      case DType::i32: return static_cast<const std::int32_t*>(first)[offset + t] != 0;
      default: return static_cast<const std::int64_t*>(first)[offset + t] != 0;
    }
  }

  // 1 / how many count; 0 when none does.
  HWY_INLINE double share(std::int64_t steps) const {
    std::int64_t count = 0;
    for (std::int64_t t = 0; t < steps; ++t) count += counts(t) ? 1 : 0;
    return count > 0 ? 1 / static_cast<double>(count) : 0;
  }
};

template <class S>
struct Sequence {
  const S* x;
  std::int64_t steps, columns;
  Mask mask;
  double share;
};

// `Vectors` neighbouring vectors of columns, from column i on, walked through all positions.
template <int Vectors, class S, class Io>
HWY_INLINE void pool_columns(const Sequence<S>& s, std::int64_t i, S* y, Io io) {
  const Tag<S> d;
  Vec<Tag<S>> sum[Vectors];
  for (int k = 0; k < Vectors; ++k) sum[k] = hn::Zero(d);
  for (std::int64_t t = 0; t < s.steps; ++t) {
    if (!s.mask.counts(t)) continue;
    const S* row = s.x + t * s.columns + i;
    for (int k = 0; k < Vectors; ++k) sum[k] = hn::Add(sum[k], io.load(d, row + k * lanes(d)));
  }
  const auto factor = hn::Set(d, static_cast<Compute<S>>(s.share));
  for (int k = 0; k < Vectors; ++k) io.store(d, hn::Mul(sum[k], factor), y + i + k * lanes(d));
}

inline void forward(const MeanPoolArgs& a) noexcept {
  constexpr std::int64_t kColumns = 256;  // of a piece
  const std::int64_t cuts = ceil_div(a.columns, kColumns);
  for_storage(a.dtype, [&](auto storage) {
    using S = decltype(storage);
    const Tag<S> d;
    parallel_chunks(a.batch * cuts, [&](std::int64_t piece) {
      const std::int64_t b = piece / cuts;
      std::int64_t i = piece % cuts * kColumns;
      const std::int64_t end = a.columns - i < kColumns ? a.columns : i + kColumns;
      const Mask mask{a.mask_dtype, a.mask, b * a.steps};
      const Sequence<S> sequence{static_cast<const S*>(a.x) + b * a.steps * a.columns, a.steps,
                                 a.columns, mask, mask.share(a.steps)};
      S* y = static_cast<S*>(a.y) + b * a.columns;
      const std::int64_t n = lanes(d);
      for (; i + 8 * n <= end; i += 8 * n) pool_columns<8>(sequence, i, y, WholeVector{});
      for (; i + n <= end; i += n) pool_columns<1>(sequence, i, y, WholeVector{});
      if (i < end) pool_columns<1>(sequence, i, y, PartVector{end - i});
    });
  });
}

// dx[b, t] = m[b, t]·dy[b] / Σ m[b]
inline void backward(const MeanPoolBackwardArgs& a) noexcept {
  for_storage(a.dtype, [&](auto storage) {
    using S = decltype(storage);
    const Tag<S> d;
    const std::int64_t grain = row_grain(a.columns);
    const std::int64_t cuts = ceil_div(a.steps, grain);
    parallel_chunks(a.batch * cuts, [&](std::int64_t piece) {
      const std::int64_t b = piece / cuts;
      const std::int64_t first = piece % cuts * grain;
      const std::int64_t last = a.steps - first < grain ? a.steps : first + grain;
      const Mask mask{a.mask_dtype, a.mask, b * a.steps};
      const auto share = hn::Set(d, static_cast<Compute<S>>(mask.share(a.steps)));
      const S* dy = static_cast<const S*>(a.dy) + b * a.columns;
      for (std::int64_t t = first; t < last; ++t) {
        const bool counts = mask.counts(t);
        S* dx = static_cast<S*>(a.dx) + (b * a.steps + t) * a.columns;
        each_vector(d, a.columns, [&](std::int64_t i, auto io) {
          io.store(d, counts ? hn::Mul(io.load(d, dy + i), share) : hn::Zero(d), dx + i);
        });
      }
    });
  });
}

}  // namespace mean_pool_detail

const MeanPoolKernels mean_pool_kernels{mean_pool_detail::forward};
const MeanPoolGradientKernels mean_pool_gradient_kernels{mean_pool_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
