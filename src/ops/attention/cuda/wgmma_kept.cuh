// What dropout keeps, as threads of the warpgroups' tiles read it, and the choice of kernels with
// and without it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/attention/cuda/layouts.h"

namespace heddle::cuda::attention {

// 32 columns of a row, of which a thread has eight: four neighbours of two.
class KeptWord {
 public:
  __device__ __forceinline__ KeptWord(std::uint32_t word, int lane)
      : second_(word << kept_shift(lane, 1)), first_(second_ << 1) {}

  // A mask of two halves, of columns 8n + 2 · (lane % 4) and the next one.
  __device__ __forceinline__ std::uint32_t pair(int n) const {
    std::uint32_t mask;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(mask) : "r"(first_), "r"(second_), "r"(kept_selector(n)));
    return mask;
  }

 private:
  std::uint32_t second_, first_;
};

template <class F>
void for_wgmma_shape(int width, bool drops, F f) {
  using Narrow = std::integral_constant<int, 64>;
  using Wide = std::integral_constant<int, 128>;
  if (width == 64) return drops ? f(Narrow(), std::true_type()) : f(Narrow(), std::false_type());
  return drops ? f(Wide(), std::true_type()) : f(Wide(), std::false_type());
}

}  // namespace heddle::cuda::attention
