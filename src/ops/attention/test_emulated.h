// Attention on emulated AMX tiles: what a machine with tiles runs, as far as this one can tell.
#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "backend/cpu/gemm/amx/small/small.h"
#include "backend/cpu/isa.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::ops {

// Whether there are kernels in use that the tiles can be emulated for.
inline bool multiplies_bf16() { return cpu::current_isa() >= cpu::Isa::avx512_bf16; }

// How often the tiles took a product over.
inline std::atomic<int> taken = 0;
inline std::atomic<int> taken_backward = 0;  // by the kernel of long heads

inline void counted(const cpu::SmallProduct& p) noexcept {
  EXPECT_TRUE(cpu::fits_tiles(p));
  ++taken;
  if constexpr (cpu::kHasTiles) cpu::amx_small_product_emulated(p);
}

inline void counted_group([[maybe_unused]] const cpu::TransposedGroup& g) noexcept {
  ++taken;
  if constexpr (cpu::kHasTiles) cpu::amx_transposed_group_emulated(g);
}

inline void counted_backward([[maybe_unused]] const cpu::BackwardGroup& g) noexcept {
  ++taken_backward;
  if constexpr (cpu::kHasTiles) cpu::amx_backward_group_emulated(g);
}

inline const cpu::AttentionTiles counted_tiles{counted, counted_group, counted_backward};

// Attention takes the tiles while one of these lives.
class OnEmulatedTiles {
 public:
  OnEmulatedTiles() { cpu::planted_attention_tiles = &counted_tiles; }
  ~OnEmulatedTiles() { cpu::planted_attention_tiles = nullptr; }
  OnEmulatedTiles(const OnEmulatedTiles&) = delete;
  OnEmulatedTiles& operator=(const OnEmulatedTiles&) = delete;
};

}  // namespace heddle::ops
