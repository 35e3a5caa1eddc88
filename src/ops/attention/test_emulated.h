// Attention on emulated AMX tiles: what a machine with tiles runs, as far as this one can tell.
#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "backend/cpu/gemm/amx/small.h"
#include "backend/cpu/kernels.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::ops {

// Whether there is a kernel that the tiles can be emulated with.
inline bool multiplies_bf16() {
  for (const cpu::Isa isa : cpu::available_isas())
    if (isa >= cpu::Isa::avx512_bf16) return true;
  return false;
}

// How often the tiles took a product over.
inline std::atomic<int> taken = 0;
inline std::atomic<int> taken_backward = 0;  // by the kernel of long heads

inline void counted(const cpu::SmallProduct& p) noexcept {
  EXPECT_TRUE(cpu::fits_tiles(p));
  ++taken;
  cpu::amx_small_product_emulated(p);
}

inline void counted_group(const cpu::TurnedGroup& g) noexcept {
  ++taken;
  cpu::amx_turned_group_emulated(g);
}

inline void counted_backward(const cpu::BackwardGroup& g) noexcept {
  ++taken_backward;
  cpu::amx_backward_group_emulated(g);
}

// The kernels of the machine, given tiles.
inline const cpu::AttentionKernels with_tiles{
    [](const cpu::AttentionArgs& a) noexcept {
      cpu::AttentionArgs b = a;
      b.small_product = counted;
      b.turned_group = counted_group;
      cpu::native_kernels<cpu::AttentionKernels>(cpu::Isa::avx512_bf16).forward(b);
    },
    [](const cpu::AttentionBackwardArgs& a) noexcept {
      cpu::AttentionBackwardArgs b = a;
      b.forward.small_product = counted;
      b.backward_group = counted_backward;
      cpu::native_kernels<cpu::AttentionKernels>(cpu::Isa::avx512_bf16).backward(b);
    }};

// Attention takes the tiles while one of these lives.
class OnEmulatedTiles {
 public:
  OnEmulatedTiles() { cpu::planted_kernels<cpu::AttentionKernels> = &with_tiles; }
  ~OnEmulatedTiles() { cpu::planted_kernels<cpu::AttentionKernels> = nullptr; }
  OnEmulatedTiles(const OnEmulatedTiles&) = delete;
  OnEmulatedTiles& operator=(const OnEmulatedTiles&) = delete;
};

}  // namespace heddle::ops
