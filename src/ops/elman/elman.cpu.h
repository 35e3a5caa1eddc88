// The scan of an Elman network, forward and back through time.
//
// Sequences are independent: a thread takes a block of them through all steps, without waiting for
// others. Neither the cut into blocks nor the number of running sequences changes the order in
// which an element is summed, which depends on the width alone.
#include <cstring>

#include "backend/cpu/own_storage.h"
#include "backend/cpu/vector_math.h"
#include "ops/elman/elman.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace elman_detail {

// One block of sequences; its i-th is sequence(i).
template <class S>
struct Block {
  using C = Compute<S>;
  const ElmanScan& s;
  std::int64_t number;
  std::int64_t count;  // sequences
  S* rows;             // [count, H]
  C* sums;             // [count, H]

  Block(const ElmanScan& scan, std::int64_t k) : s(scan), number(k) {
    const std::int64_t each = s.batch / s.blocks, more = s.batch % s.blocks;
    count = each + (k < more ? 1 : 0);
    const std::int64_t before = k * each + (k < more ? k : more);
    rows = static_cast<S*>(s.rows) + before * s.width;
    sums = static_cast<C*>(s.sums) + before * s.width;
  }

  std::int64_t sequence(std::int64_t i) const { return s.order[number + i * s.blocks]; }
  std::int64_t length(std::int64_t i) const { return s.lengths[sequence(i)]; }
  std::int64_t longest() const { return count > 0 ? length(0) : 0; }

  // Of [B, T, H] and of [B, H].
  std::int64_t at(std::int64_t i, std::int64_t t) const {
    return (sequence(i) * s.steps + t) * s.width;
  }
  std::int64_t at(std::int64_t i) const { return sequence(i) * s.width; }

  // How many sequences have a token t, given how many had one at a neighbouring t.
  std::int64_t running(std::int64_t t, std::int64_t before) const {
    std::int64_t n = before;
    while (n < count && length(n) > t) ++n;
    while (n > 0 && length(n - 1) <= t) --n;
    return n;
  }

  // sums = rows · packed, for the first n sequences.
  void multiply(std::int64_t n) const {
    GemmJob job;
    job.m = n;
    job.n = s.width;
    job.k = s.width;
    job.a = {rows, dtype_of<S>, s.width, 1};
    job.packed_b = s.packed;
    job.c = sums;
    job.c_dtype = dtype_of<C>;
    job.c_row_stride = s.width;
    s.gemm->run(job);
  }

  void clear_padding(S* x) const {
    for (std::int64_t i = 0; i < count; ++i)
      clear(x + at(i, length(i)), (s.steps - length(i)) * s.width);
  }

  template <class T>
  static void clear(T* x, std::int64_t n) {
    if (n > 0) std::memset(x, 0, static_cast<std::size_t>(n) * sizeof(T));
  }
};

template <class S, class Body>
void for_blocks(const ElmanScan& s, Body body) {
  parallel_chunks(s.blocks, [&](std::int64_t k) { body(Block<S>(s, k)); });
}

template <class T>
void copy_row(const T* from, T* to, std::int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

// h = tanh(pre + sums), to y and to the rows of the next product.
template <class S>
void advance(const S* pre, const Compute<S>* sums, S* y, S* row, std::int64_t n) {
  const Tag<S> d;
  const auto state = [&](auto a, auto b) { return tanh(d, hn::Add(a, b)); };
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto h = state(load(d, pre + i), load(d, sums + i));
        store(d, h, y + i);
        store(d, h, row + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto h = state(load_n(d, pre + i, rest), load_n(d, sums + i, rest));
        store_n(d, h, y + i, rest);
        store_n(d, h, row + i, rest);
      });
}

template <class S>
void forward_block(const ElmanArgs& a, const Block<S>& b) {
  const std::int64_t width = a.scan.width;
  const auto* pre = static_cast<const S*>(a.pre);
  const auto* h0 = static_cast<const S*>(a.h0);
  auto* y = static_cast<S*>(a.y);
  b.clear_padding(y);
  for (std::int64_t i = 0; i < b.count; ++i) {
    S* row = b.rows + i * width;
    h0 != nullptr ? copy_row(h0 + b.at(i), row, width) : b.clear(row, width);
  }
  const std::int64_t steps = b.longest();
  std::int64_t n = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t t = a.scan.reverse ? steps - 1 - step : step;
    n = b.running(t, n);
    if (step > 0 || h0 != nullptr) {
      b.multiply(n);
    } else {
      b.clear(b.sums, n * width);
    }
    for (std::int64_t i = 0; i < n; ++i)
      advance(pre + b.at(i, t), b.sums + i * width, y + b.at(i, t), b.rows + i * width, width);
  }
  auto* last = static_cast<S*>(a.last);
  for (std::int64_t i = 0; i < b.count; ++i) copy_row(b.rows + i * width, last + b.at(i), width);
}

// dpre = (dy + sums) · (1 - y²), to dpre and to the rows of the next product.
template <class S>
void retreat(const S* dy, const S* y, const Compute<S>* sums, S* dpre, S* row, std::int64_t n) {
  const Tag<S> d;
  const auto one = hn::Set(d, 1);
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto h = load(d, y + i);
        auto dh = load(d, sums + i);
        if (dy != nullptr) dh = hn::Add(dh, load(d, dy + i));
        const auto g = hn::Mul(dh, hn::NegMulAdd(h, h, one));
        store(d, g, dpre + i);
        store(d, g, row + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto h = load_n(d, y + i, rest);
        auto dh = load_n(d, sums + i, rest);
        if (dy != nullptr) dh = hn::Add(dh, load_n(d, dy + i, rest));
        const auto g = hn::Mul(dh, hn::NegMulAdd(h, h, one));
        store_n(d, g, dpre + i, rest);
        store_n(d, g, row + i, rest);
      });
}

// The sums of a sequence hold dL/d(its state) from the later steps: dlast before it runs, and in
// the end the gradient of h0, because products leave those that do not run alone.
template <class S>
void backward_block(const ElmanBackwardArgs& a, const Block<S>& b) {
  const std::int64_t width = a.scan.width;
  const auto* y = static_cast<const S*>(a.y);
  const auto* dy = static_cast<const S*>(a.dy);
  const auto* dlast = static_cast<const S*>(a.dlast);
  auto* dpre = static_cast<S*>(a.dpre);
  const auto same = [](auto, auto v) { return v; };
  b.clear_padding(dpre);
  for (std::int64_t i = 0; i < b.count; ++i) {
    Compute<S>* sums = b.sums + i * width;
    dlast != nullptr ? map(dlast + b.at(i), sums, width, same) : b.clear(sums, width);
  }
  const std::int64_t steps = b.longest();
  std::int64_t n = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t t = a.scan.reverse ? step : steps - 1 - step;
    n = b.running(t, n);
    for (std::int64_t i = 0; i < n; ++i)
      retreat(dy != nullptr ? dy + b.at(i, t) : nullptr, y + b.at(i, t), b.sums + i * width,
              dpre + b.at(i, t), b.rows + i * width, width);
    if (step + 1 < steps || a.dh0 != nullptr) b.multiply(n);
  }
  if (a.dh0 == nullptr) return;
  auto* dh0 = static_cast<S*>(a.dh0);
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Compute<S>* sums = b.sums + i * width;
    const Tag<S> d;
    for_vectors(
        d, width, [&](std::int64_t k) { store(d, load(d, sums + k), dh0 + b.at(i) + k); },
        [&](std::int64_t k, std::int64_t rest) {
          store_n(d, load_n(d, sums + k, rest), dh0 + b.at(i) + k, rest);
        });
  }
}

template <class S>
void previous_of(const ElmanPreviousArgs& a, std::int64_t sequence) {
  const std::int64_t steps = a.scan.steps, width = a.scan.width;
  const std::int64_t length = a.scan.lengths[sequence];
  const S* y = static_cast<const S*>(a.y) + sequence * steps * width;
  S* out = static_cast<S*>(a.out) + (sequence - a.first) * steps * width;
  Block<S>::clear(out + length * width, (steps - length) * width);
  if (length == 0) return;
  const bool reverse = a.scan.reverse;
  copy_row(reverse ? y + width : y, reverse ? out : out + width, (length - 1) * width);
  S* start = out + (reverse ? length - 1 : 0) * width;
  if (a.h0 == nullptr) return Block<S>::clear(start, width);
  copy_row(static_cast<const S*>(a.h0) + sequence * width, start, width);
}

template <Types kTypes>
void forward(const ElmanArgs& a) noexcept {
  for_types<kTypes, ElmanKernels>(a.scan.dtype, &ElmanKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    for_blocks<S>(a.scan, [&](const Block<S>& b) { forward_block<S>(a, b); });
  });
}

inline void backward(const ElmanBackwardArgs& a) noexcept {
  for_own_storage<ElmanGradientKernels>(
      a.scan.dtype, &ElmanGradientKernels::backward, a, [&](auto s) {
        using S = decltype(s);
        for_blocks<S>(a.scan, [&](const Block<S>& b) { backward_block<S>(a, b); });
      });
}

inline void previous(const ElmanPreviousArgs& a) noexcept {
  for_own_storage<ElmanGradientKernels>(
      a.scan.dtype, &ElmanGradientKernels::previous, a, [&](auto s) {
        using S = decltype(s);
        parallel_chunks(a.count, [&](std::int64_t i) { previous_of<S>(a, a.first + i); });
      });
}

}  // namespace elman_detail

const ElmanKernels elman_kernels{elman_detail::forward<Types::narrow>};
const ElmanKernels elman_f64_kernels{elman_detail::forward<Types::f64>};
const ElmanGradientKernels elman_gradient_kernels{elman_detail::backward, elman_detail::previous};

}  // namespace heddle::cpu::HEDDLE_ISA
