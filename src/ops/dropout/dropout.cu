// dropout on CUDA: the CPU's numbers, eight elements of a block of words at a time.
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/dropout/dropout.call.h"

namespace heddle::cuda {

namespace {

constexpr int kDrawn = 8;  // elements of one block: 16 bits each

// The factor on element j of a block.
template <class C>
__device__ C factor_of(const PhiloxBlock& words, int j, std::uint32_t threshold, C scale) {
  const std::uint32_t word = words[static_cast<std::size_t>(j / 2)];
  const std::uint32_t number = j % 2 == 0 ? word & 0xffffu : word >> 16;
  return number < threshold ? C{0} : scale;
}

template <class S>
void dropout_as(ops::DropoutCall& c) {
  using C = Compute<S>;
  const S* const x = in<S>(c.x);
  S* const y = out<S>(c.y);
  const std::int64_t count = c.x.elements();
  const RandomKey drawn = c.key;
  const std::uint32_t* const later = later_steps_of(c.y.device());
  const std::uint32_t threshold = c.threshold;
  const C scale = static_cast<C>(c.scale);
  const bool whole = aligned(x) && aligned(y);
  each("dropout", stream_of(c.y.device()), ceil_div(count, kDrawn),
       [=] __device__(std::int64_t block) {
         RandomKey key = drawn;
         key.step += *later;
         const PhiloxBlock words = philox(key, static_cast<std::uint64_t>(block));
         const std::int64_t first = block * kDrawn;
         if (whole && first + kDrawn <= count) {
#pragma unroll
           for (int i = 0; i < kDrawn; i += kVector<S>) {
             Values<S> v = load(x + first + i);
#pragma unroll
             for (int e = 0; e < kVector<S>; ++e) {
               // Not v · 0: what is dropped is 0 whatever it was, and -0 is not.
               const C f = factor_of(words, i + e, threshold, scale);
               v.v[e] = f == C{0} ? C{0} : v.v[e] * f;
             }
             store(y + first + i, v);
           }
           return;
         }
#pragma unroll
         for (int j = 0; j < kDrawn; ++j)
           if (first + j < count) {
             const C f = factor_of(words, j, threshold, scale);
             y[first + j] = narrow<S>(f == C{0} ? C{0} : wide(x[first + j]) * f);
           }
       });
}

void run_dropout(ops::DropoutCall& c) {
  for_storage(c.x.dtype(), [&](auto s) { dropout_as<decltype(s)>(c); });
}

}  // namespace

void add_dropout_routines() { add<ops::DropoutCall>({run_dropout}); }

}  // namespace heddle::cuda
