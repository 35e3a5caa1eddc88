// rope on CUDA.
#include "backend/cuda/held.h"
#include "backend/cuda/turn.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/rope/rope.call.h"

namespace heddle::cuda {

namespace {

template <class S>
struct RopeArgs {
  std::int64_t tokens, heads, width, pairs, positions;  // pairs: R / 2
  std::int64_t batch_stride, token_stride, head_stride;
  std::int64_t first_position;
  const void* at;  // each token's position, or null
  bool at_wide;    // ... in i64
  std::int64_t at_step;
  Compute<S> direction;
  const Compute<S>* cos;
  const Compute<S>* sin;
  const S* x;
  S* y;
};

// kEach neighbouring elements as numbers.
template <class S, int kEach>
struct Few {
  Compute<S> v[kEach];
};

template <class S, int kEach>
__device__ Few<S, kEach> few(const S* p) {
  Few<S, kEach> to;
  if constexpr (kEach == 1) {
    to.v[0] = wide(*p);
  } else {
    const Values<S> from = load(p);
#pragma unroll
    for (int i = 0; i < kEach; ++i) to.v[i] = from.v[i];
  }
  return to;
}

template <class S, int kEach>
__device__ void keep(S* p, const Few<S, kEach>& from) {
  if constexpr (kEach == 1) {
    *p = narrow<S>(from.v[0]);
  } else {
    Values<S> to;
#pragma unroll
    for (int i = 0; i < kEach; ++i) to.v[i] = from.v[i];
    store(p, to);
  }
}

template <class S>
__device__ std::int64_t position_of(const RopeArgs<S>& a, std::int64_t batch, std::int64_t token) {
  if (a.at == nullptr) return a.first_position + token;
  const std::int64_t i = batch * a.at_step + token;
  const std::int64_t p = a.at_wide ? static_cast<const std::int64_t*>(a.at)[i]
                                   : static_cast<const std::int32_t*>(a.at)[i];
  return p < 0 ? 0 : p < a.positions ? p : a.positions - 1;  // never outside of the tables
}

// Turns kEach pairs from pair `first` on. Interleaved, they are 2·kEach neighbours.
template <class S, int kEach, bool kInterleaved>
__device__ void turn(const RopeArgs<S>& a, const S* from, S* to, std::int64_t position,
                     std::int64_t first) {
  using C = Compute<S>;
  const std::int64_t one = kInterleaved ? 2 * first : first;
  const std::int64_t two = kInterleaved ? one + kEach : first + a.pairs;
  Few<S, kEach> low = few<S, kEach>(from + one), high = few<S, kEach>(from + two);
  const C* const cos = a.cos + position * a.pairs + first;
  const C* const sin = a.sin + position * a.pairs + first;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    // Pair i: elements 2i and 2i + 1 of both halves together, or element i of each.
    C& x1 =
        kInterleaved ? (2 * i < kEach ? low.v[2 * i % kEach] : high.v[2 * i % kEach]) : low.v[i];
    C& x2 = kInterleaved
                ? (2 * i + 1 < kEach ? low.v[(2 * i + 1) % kEach] : high.v[(2 * i + 1) % kEach])
                : high.v[i];
    const C c = cos[i], s = a.direction * sin[i];
    const TurnedPair<C> turned = turned_pair(x1, x2, c, s);
    x1 = turned.one;
    x2 = turned.two;
  }
  keep(to + one, low);
  keep(to + two, high);
}

// A job is kEach pairs of a head, or kEach elements of it that stay as they are.
template <class S, int kEach, bool kInterleaved>
__global__ void __launch_bounds__(kThreads) turn_all(std::int64_t jobs, const RopeArgs<S> a) {
  const std::int64_t turned = a.pairs / kEach;
  const std::int64_t of_head = turned + (a.width - 2 * a.pairs) / kEach;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < jobs; i += step) {
    const std::int64_t head_row = i / of_head, unit = i - head_row * of_head;
    const std::int64_t row = head_row / a.heads, head = head_row - row * a.heads;
    const std::int64_t batch = row / a.tokens, token = row - batch * a.tokens;
    const S* const from =
        a.x + batch * a.batch_stride + token * a.token_stride + head * a.head_stride;
    S* const to = a.y + head_row * a.width;
    if (unit < turned) {
      turn<S, kEach, kInterleaved>(a, from, to, position_of(a, batch, token), unit * kEach);
    } else {
      const std::int64_t at = 2 * a.pairs + (unit - turned) * kEach;
      keep(to + at, few<S, kEach>(from + at));
    }
  }
}

template <class S>
bool in_vectors(const RopeArgs<S>& a) {
  constexpr std::int64_t kEach = kVector<S>;
  return a.pairs % kEach == 0 && a.width % kEach == 0 && aligned(a.y) &&
         rows_aligned(a.x, a.batch_stride) && rows_aligned(a.x, a.token_stride) &&
         rows_aligned(a.x, a.head_stride);
}

template <class S, int kEach>
void launch_rope(const RopeArgs<S>& a, std::int64_t head_rows, bool interleaved,
                 cudaStream_t stream) {
  const std::int64_t jobs = head_rows * ((a.width - a.pairs) / kEach);
  if (jobs == 0) return;
  const unsigned blocks = grid_for(ceil_div(jobs, kThreads));
  if (interleaved)
    turn_all<S, kEach, true><<<blocks, kThreads, 0, stream>>>(jobs, a);
  else
    turn_all<S, kEach, false><<<blocks, kThreads, 0, stream>>>(jobs, a);
  check_launch("rope");
}

// One token at a place that the device knows may go with the attention that follows.
bool held_back(const ops::RopeCall& c, const RopeArgs<bf16>& a, bool interleaved,
               const PlainLaunch& plain) {
  if (a.tokens != 1 || a.at == nullptr || a.at_wide || a.at_step != 0 || c.direction != 1)
    return false;
  FewRope rope;
  rope.batch = static_cast<int>(c.x.size(0));
  rope.heads = static_cast<int>(a.heads);
  rope.width = static_cast<int>(a.width);
  rope.pairs = static_cast<int>(a.pairs);
  rope.positions = static_cast<int>(a.positions);
  rope.batch_stride = a.batch_stride;
  rope.head_stride = a.head_stride;
  rope.interleaved = interleaved;
  rope.cos = a.cos;
  rope.sin = a.sin;
  rope.at = static_cast<const std::int32_t*>(a.at);
  rope.x = a.x;
  rope.y = a.y;
  rope.plain = plain;
  const HeldBack held = held_of(c.y.device());
  held.work.hold(rope, held.stream);
  return true;
}

template <class S>
void rope_as(ops::RopeCall& c) {
  using C = Compute<S>;
  RopeArgs<S> a;
  a.tokens = c.x.size(1);
  a.heads = c.x.size(2);
  a.width = c.x.size(3);
  a.pairs = c.cos.size(1);
  a.positions = c.cos.size(0);
  a.batch_stride = c.x.strides()[0];
  a.token_stride = c.x.strides()[1];
  a.head_stride = c.x.strides()[2];
  a.first_position = c.first_position;
  a.at = in<void>(c.positions);
  a.at_wide = c.positions.defined() && c.positions.dtype() == DType::i64;
  a.at_step = c.positions.defined() && c.positions.rank() == 2 ? a.tokens : 0;
  a.direction = static_cast<C>(c.direction);
  a.cos = in<C>(c.cos);
  a.sin = in<C>(c.sin);
  a.x = in<S>(c.x);
  a.y = out<S>(c.y);
  const bool interleaved = c.pairing == ops::Pairing::interleaved;
  const std::int64_t head_rows = c.x.size(0) * a.tokens * a.heads;
  const auto plain = [a, head_rows, interleaved](cudaStream_t stream) {
    if (in_vectors(a))
      launch_rope<S, kVector<S>>(a, head_rows, interleaved, stream);
    else
      launch_rope<S, 1>(a, head_rows, interleaved, stream);
  };
  if constexpr (std::is_same_v<S, bf16>)
    if (held_back(c, a, interleaved, plain)) return;
  plain(stream_of(c.y.device()));
}

void run_rope(ops::RopeCall& c) {
  for_storage(c.x.dtype(), [&](auto s) { rope_as<decltype(s)>(c); });
}

}  // namespace

// Tables are made once, in float64: the host does that.
void add_rope_routines() { add<ops::RopeCall>({run_rope}); }

}  // namespace heddle::cuda
