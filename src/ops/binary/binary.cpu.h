// y = f(a, b), element by element, on broadcast and strided operands.
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "backend/cpu/strided.h"
#include "ops/binary/binary.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace binary_detail {

template <class Use>
void with_function(Binary kind, Use use) {
  switch (kind) {
    case Binary::add: return use([](auto, auto a, auto b) { return hn::Add(a, b); });
    case Binary::sub: return use([](auto, auto a, auto b) { return hn::Sub(a, b); });
    case Binary::mul: return use([](auto, auto a, auto b) { return hn::Mul(a, b); });
    case Binary::div: return use([](auto, auto a, auto b) { return hn::Div(a, b); });
    case Binary::maximum:  // NaN wins, as in numpy
      return use([](auto, auto a, auto b) {
        return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
      });
    case Binary::prefers_a:
      return use([](auto d, auto a, auto b) {
        const auto tie = hn::IfThenElseZero(hn::Eq(a, b), constant(d, 0.5));
        return hn::IfThenElse(hn::Gt(a, b), constant(d, 1), tie);
      });
    case Binary::prefers_b:
      return use([](auto d, auto a, auto b) {
        const auto tie = hn::IfThenElseZero(hn::Eq(a, b), constant(d, 0.5));
        return hn::IfThenElse(hn::Gt(b, a), constant(d, 1), tie);
      });
  }
}

// A vector of an operand that steps by `step` elements. Out of line, like the store, because every
// function of every type has them and few calls come here.
template <class D, class S>
HWY_NOINLINE Vec<D> load_strided(D d, const S* p, std::int64_t step, std::int64_t n) {
  HWY_ALIGN S buffer[kMaxLanes<D>] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = p[i * step];
  return load(d, buffer);
}

template <class D, class S>
HWY_NOINLINE void store_strided(D d, Vec<D> v, S* p, std::int64_t step, std::int64_t n) {
  HWY_ALIGN S buffer[kMaxLanes<D>] = {};
  store(d, v, buffer);
  for (std::int64_t i = 0; i < n; ++i) p[i * step] = buffer[i];
}

// Three dense arrays, the common case of large ones, y apart from the others.
template <class S, class F>
void dense_streamed(const S* a, const S* b, S* y, std::int64_t count, F f) {
  parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    stream_map(a + begin, b + begin, y + begin, end - begin, f);
  });
}

template <class S, class F>
void row(const S* a, std::int64_t a_step, const S* b, std::int64_t b_step, S* y,
         std::int64_t y_step, std::int64_t n, F f) {
  const Tag<S> d;
  if (y_step == 1 && a_step == 1 && b_step == 1) return map(a, b, y, n, f);
  if (y_step == 1 && a_step == 1 && b_step == 0) {
    const auto vb = load_strided(d, b, 0, lanes(d));
    return map(a, y, n, [&](auto, auto va) { return f(d, va, vb); });
  }
  if (y_step == 1 && a_step == 0 && b_step == 1) {
    const auto va = load_strided(d, a, 0, lanes(d));
    return map(b, y, n, [&](auto, auto vb) { return f(d, va, vb); });
  }
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    const std::int64_t m = n - i < lanes(d) ? n - i : lanes(d);
    const auto v = f(d, load_strided(d, a + i * a_step, a_step, m),
                     load_strided(d, b + i * b_step, b_step, m));
    store_strided(d, v, y + i * y_step, y_step, m);
  }
}

template <Types kTypes>
void forward(const BinaryArgs& args) noexcept {
  const Strides* const strides[3] = {&args.a_strides, &args.b_strides, &args.y_strides};
  const Walk<3> w = make_walk<3>(args.shape, strides);
  const int last = w.rank - 1;
  for_types<kTypes, BinaryKernels>(args.dtype, &BinaryKernels::forward, args, [&](auto s) {
    using S = decltype(s);
    const auto* a = static_cast<const S*>(args.a);
    const auto* b = static_cast<const S*>(args.b);
    auto* y = static_cast<S*>(args.y);
    const bool dense =
        w.rank == 1 && w.stride[0][0] == 1 && w.stride[1][0] == 1 && w.stride[2][0] == 1;
    const bool past = args.stream && dense && on_cache_line(y);
    with_function(args.kind, [&](auto f) {
      if (past) return dense_streamed(a, b, y, w.inner(), f);
      for_pieces(w, [&](const std::int64_t* at, std::int64_t n) {
        row(a + at[0], w.stride[0][last], b + at[1], w.stride[1][last], y + at[2],
            w.stride[2][last], n, f);
      });
    });
  });
}

}  // namespace binary_detail

const BinaryKernels binary_kernels{binary_detail::forward<Types::narrow>};
const BinaryKernels binary_f64_kernels{binary_detail::forward<Types::f64>};

}  // namespace heddle::cpu::HEDDLE_ISA
