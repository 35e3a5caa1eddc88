// random on CUDA: the integers of heddle/random.h, the CPU's formulas.
#include <cmath>

#include "backend/cuda/kernel.cuh"
#include "base/divide.h"
#include "ops/random/random.call.h"

namespace heddle::cuda {

namespace {

template <class C>
__device__ C upper_bits(std::uint32_t word) {
  return static_cast<C>(word >> 8);
}

// r·cos(t) for even elements and r·sin(t) for odd ones, r from the even word and t from the odd
// one. The turn is handed over while it is still exact.
template <class C>
__device__ C normal_number(std::uint32_t radius, std::uint32_t turn, bool odd) {
  const C r = std::sqrt(C{-2} * std::log((upper_bits<C>(radius) + C{1}) * C{0x1p-24}));
  const C half_turns = upper_bits<C>(turn) * C{0x1p-23};
  if constexpr (std::is_same_v<C, double>)
    return r * (odd ? ::sinpi(half_turns) : ::cospi(half_turns));
  else
    return r * (odd ? ::sinpif(half_turns) : ::cospif(half_turns));
}

// A thread makes the four elements of one block of words.
template <class S>
void random_as(ops::RandomCall& c) {
  using C = Compute<S>;
  S* const y = out<S>(c.y);
  const std::int64_t count = c.y.elements();
  const RandomKey drawn = c.key;
  const std::uint32_t* const later = later_steps_of(c.y.device());
  const bool normal = c.normal;
  const C offset = static_cast<C>(c.offset), factor = static_cast<C>(c.factor);
  each("random", stream_of(c.y.device()), ceil_div(count, 4), [=] __device__(std::int64_t block) {
    RandomKey key = drawn;
    key.step += *later;
    const PhiloxBlock words = philox(key, static_cast<std::uint64_t>(block));
    for (int j = 0; j < 4; ++j) {
      const std::int64_t i = 4 * block + j;
      if (i >= count) return;
      const C number = normal ? normal_number<C>(words[j & ~1], words[j | 1], (j & 1) != 0)
                              : upper_bits<C>(words[j]) * C{0x1p-24};
      y[i] = narrow<S>(factor * number + offset);
    }
  });
}

void run_random(ops::RandomCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { random_as<decltype(s)>(c); });
}

}  // namespace

void add_random_routines() { add<ops::RandomCall>({run_random}); }

}  // namespace heddle::cuda
