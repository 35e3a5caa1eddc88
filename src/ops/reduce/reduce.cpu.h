// Sums and maxima over the middle dimension of [outer, length, inner].
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "ops/reduce/reduce.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace reduce_detail {

template <Reduce K, class D>
HWY_INLINE Vec<D> start(D d) {
  if constexpr (K == Reduce::sum) return hn::Zero(d);
  return hn::Neg(hn::Inf(d));
}

template <Reduce K, class D>
HWY_INLINE Vec<D> join([[maybe_unused]] D d, Vec<D> a, Vec<D> b) {
  if constexpr (K == Reduce::sum) return hn::Add(a, b);
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);  // NaN wins
}

// Reduces a contiguous run of n elements.
template <Reduce K, class S>
Compute<S> reduce_run(const S* x, std::int64_t n) {
  const Tag<S> d;
  if constexpr (K == Reduce::sum) {
    return sum_vectors(
        d, n, [&](std::int64_t i) { return load(d, x + i); },
        [&](std::int64_t i, std::int64_t rest) { return load_n(d, x + i, rest); });
  } else {
    auto best = start<K>(d);
    const Compute<S> lowest = hn::GetLane(best);
    for_vectors(
        d, n, [&](std::int64_t i) { best = join<K>(d, best, load(d, x + i)); },
        [&](std::int64_t i, std::int64_t rest) {
          best = join<K>(d, best, load_n(d, x + i, rest, lowest));
        });
    HWY_ALIGN Compute<S> buffer[kMaxLanes<Tag<S>>];
    hn::Store(best, d, buffer);
    Compute<S> value = buffer[0];
    for (std::int64_t i = 1; i < lanes(d); ++i)
      if (buffer[i] > value || buffer[i] != buffer[i]) value = buffer[i];
    return value;
  }
}

// out[i] = reduction over l of x[l, i], for `steps` rows of `inner` elements; out in any storage
// type. Columns go in bundles of four vectors, each walked through all rows.
template <Reduce K, class S, class Out>
void reduce_columns(const S* x, std::int64_t steps, std::int64_t inner, Out* out,
                    Compute<S> scale) {
  const Tag<S> d;
  const std::int64_t n = lanes(d);
  const auto factor = hn::Set(d, scale);
  std::int64_t i = 0;
  for (; i + 4 * n <= inner; i += 4 * n) {
    auto a = start<K>(d), b = start<K>(d), c = start<K>(d), e = start<K>(d);
    for (std::int64_t l = 0; l < steps; ++l) {
      const S* p = x + l * inner + i;
      a = join<K>(d, a, load(d, p));
      b = join<K>(d, b, load(d, p + n));
      c = join<K>(d, c, load(d, p + 2 * n));
      e = join<K>(d, e, load(d, p + 3 * n));
    }
    store(d, hn::Mul(a, factor), out + i);
    store(d, hn::Mul(b, factor), out + i + n);
    store(d, hn::Mul(c, factor), out + i + 2 * n);
    store(d, hn::Mul(e, factor), out + i + 3 * n);
  }
  for (; i + n <= inner; i += n) {
    auto a = start<K>(d);
    for (std::int64_t l = 0; l < steps; ++l) a = join<K>(d, a, load(d, x + l * inner + i));
    store(d, hn::Mul(a, factor), out + i);
  }
  if (i < inner) {
    auto a = start<K>(d);
    for (std::int64_t l = 0; l < steps; ++l)
      a = join<K>(d, a, load_n(d, x + l * inner + i, inner - i));
    store_n(d, hn::Mul(a, factor), out + i, inner - i);
  }
}

// `steps` × `inner` elements of x into `inner` of out.
template <Reduce K, class S, class Out>
void reduce_block(const S* x, std::int64_t steps, std::int64_t inner, Out* out, double scale) {
  const auto factor = static_cast<Compute<S>>(scale);
  if (inner == 1) {
    const Compute<S> value = reduce_run<K>(x, steps) * factor;
    if constexpr (std::is_same_v<Out, bf16>)
      *out = bf16::from_float(value);
    else
      *out = value;
  } else {
    reduce_columns<K>(x, steps, inner, out, factor);
  }
}

template <Reduce K, class S>
void forward_typed(const ReduceArgs& a) {
  using C = Compute<S>;
  const auto* x = static_cast<const S*>(a.x);
  auto* y = static_cast<S*>(a.y);
  auto* partial = static_cast<C*>(a.partial);
  const std::int64_t block = cpu::reduce_block(a.inner);
  const std::int64_t blocks = reduce_blocks(a.length, a.inner);
  if (blocks <= 1) {
    const std::int64_t work = a.length * a.inner + 1;
    parallel_ranges(a.outer, 1 + kGrain / work, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t o = first; o < last; ++o)
        reduce_block<K>(x + o * a.length * a.inner, a.length, a.inner, y + o * a.inner, a.scale);
    });
    return;
  }
  parallel_chunks(a.outer * blocks, [&](std::int64_t chunk) {
    const std::int64_t o = chunk / blocks;
    const std::int64_t begin = chunk % blocks * block;
    const std::int64_t steps = a.length - begin < block ? a.length - begin : block;
    reduce_block<K>(x + (o * a.length + begin) * a.inner, steps, a.inner, partial + chunk * a.inner,
                    1);
  });
  parallel_ranges(a.outer, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o)
      reduce_block<K>(partial + o * blocks * a.inner, blocks, a.inner, y + o * a.inner, a.scale);
  });
}

template <Types kTypes>
void forward(const ReduceArgs& a) noexcept {
  for_types<kTypes, ReduceKernels>(a.dtype, &ReduceKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    if (a.kind == Reduce::sum)
      forward_typed<Reduce::sum, S>(a);
    else
      forward_typed<Reduce::max, S>(a);
  });
}

template <class S>
inline Compute<S> value(const S* p) {
  if constexpr (std::is_same_v<S, bf16>)
    return p->to_float();
  else
    return *p;
}

inline void max_backward(const MaxBackwardArgs& a) noexcept {
  for_own_storage<ReduceGradientKernels>(
      a.dtype, &ReduceGradientKernels::max_backward, a, [&](auto s) {
        using S = decltype(s);
        const auto* x = static_cast<const S*>(a.x);
        const auto* y = static_cast<const S*>(a.y);
        const auto* dy = static_cast<const S*>(a.dy);
        auto* dx = static_cast<S*>(a.dx);
        parallel_ranges(a.outer * a.inner, 1 + kGrain / (a.length + 1),
                        [&](std::int64_t first, std::int64_t last) {
                          for (std::int64_t at = first; at < last; ++at) {
                            const std::int64_t base =
                                at / a.inner * a.length * a.inner + at % a.inner;
                            std::int64_t ties = 0;
                            for (std::int64_t l = 0; l < a.length; ++l)
                              ties += value(x + base + l * a.inner) == value(y + at) ? 1 : 0;
                            const Compute<S> share =
                                ties > 0 ? value(dy + at) / static_cast<Compute<S>>(ties) : 0;
                            for (std::int64_t l = 0; l < a.length; ++l) {
                              const bool is_max = value(x + base + l * a.inner) == value(y + at);
                              const Compute<S> g = is_max ? share : Compute<S>{0};
                              if constexpr (std::is_same_v<S, bf16>)
                                dx[base + l * a.inner] = bf16::from_float(g);
                              else
                                dx[base + l * a.inner] = g;
                            }
                          }
                        });
      });
}

}  // namespace reduce_detail

const ReduceKernels reduce_kernels{reduce_detail::forward<Types::narrow>};
const ReduceKernels reduce_f64_kernels{reduce_detail::forward<Types::f64>};
const ReduceGradientKernels reduce_gradient_kernels{reduce_detail::max_backward};

}  // namespace heddle::cpu::HEDDLE_ISA
