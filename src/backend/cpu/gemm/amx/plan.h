// How a product is cut. In blocks of 32:
//
//            N: panels                        unit: m_unit row blocks × n_unit panels, all of K
//        +-----+-----+-----+                  chunk: `units_per_chunk` units, what a thread takes
//    M   |unit |     |     |
//        +-----+-----+-----+                  within a unit
//        |     |     |     |                    for each outer block of K    (A: m_unit × outer,
//        L2)
//        +-----+-----+-----+                      for each panel
//                                                   for each inner block     (B: inner × 32, L1)
//                                                     for each row block     (2 × 2 tiles)
//
// Sums wait in scratch between blocks of K, in f32, as they do in the tiles: no choice made here
// changes a bit of the result, but for the one to sum in halves (split_k.h).
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/amx/epilogue.h"
#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu::amx {

enum class Choice : std::uint8_t { automatic, never, always };

// Sizes in elements unless said otherwise. The defaults are for 2 MiB of L2 and 48 KiB of L1 per
// core; bench/gemm_amx tries others.
struct Tuning {
  std::int64_t a_bytes = 384 << 10;        // of A in L2 at a time
  std::int64_t partial_bytes = 768 << 10;  // of sums that wait for the next outer block of K
  std::int64_t k_outer = 1536;             // a K up to k_whole is not cut
  std::int64_t k_whole = 1536;
  std::int64_t k_inner = 512;           // 64 bytes of B panel each: 32 KiB
  std::int64_t m_unit = 0;              // rows; 0: by shape
  std::int64_t n_unit = 0;              // columns; 0: by shape
  std::int64_t chunks = 16;             // to aim at, so that threads end together
  std::int64_t few_chunks = 8;          // where each further one costs traffic or packing
  std::int64_t stream_bytes = 4 << 20;  // a C from this size on is written past the caches
  Choice stream = Choice::automatic;
  // Copy A to scratch: beforehand or not at all (where tiles can load it); automatic: with the
  // first panel that uses it.
  Choice pack_a = Choice::automatic;
  bool prefetch_a = true;       // the next block of A to L2
  bool prefetch_b = true;       // the next panel of B to L2
  bool defer = true;            // run the epilogue between the steps of the next block
  std::int64_t defer_wait = 2;  // but not in the first ones
};

// For benchmarks and tests; not to be changed while a product runs.
Tuning& tuning() noexcept;

struct Plan {
  GemmJob job;
  std::uint64_t id = 0;    // of the call: names what thread-local scratch holds
  std::uint64_t b_id = 0;  // the same for a packed B; products of one B that run together share it
  EpilogueRows epilogue = nullptr;
  // All in blocks of 32.
  std::int64_t row_blocks = 0, panels = 0, steps = 0;
  std::int64_t m_unit = 1, n_unit = 1, outer = 1, inner = 1;
  std::int64_t m_units = 1, n_units = 1, outer_count = 1;
  std::int64_t units = 0, units_per_chunk = 1, chunks = 0;
  int threads = 1;
  bool load_in_place = false;  // tiles may load A in place
  bool copy_a = false;         // but better from a copy
  bool row_by_row = false;     // all of B is in L1: panels inside, rows outside
  bool is_short = false;       // short_kernel.h computes it
  bool own_b = false;          // chunks pack the part of B they need, each in its thread's scratch
  bool stream = false, prefetch_a = false, prefetch_b = false, defer = false;
  bool at_once = false;         // a deferred epilogue runs in one go, not some rows per step
  std::int64_t defer_wait = 0;  // steps
};

// Steps from loading one block into a tile to packing the other that is loaded this much later:
// long enough for its stores to reach L1.
inline constexpr std::int64_t kFeedAhead = 3;

// Should the chunks pack B themselves? In a small product sharing it would cost more: another
// meeting of the threads, and half of what a core loads was written by another one.
bool packs_own_b(const GemmJob& job) noexcept;

// Units of a product that packs its own B, at most.
inline constexpr std::int64_t kMostOwnUnits = 24;

// `least`: least number of chunks for a product that packs its own B, if it has that many blocks.
Plan make_plan(const GemmJob& job, int threads, std::int64_t least = 1) noexcept;

// Cuts the C of `plan` as that of `other`, of the same shape.
void cut_like(const Plan& other, Plan& plan) noexcept;

// Can chunks of `plan` use the B that the same thread has packed for `before`?
bool shares_own_b(const Plan& before, const Plan& plan) noexcept;

// One chunk of a plan. Chunks may run in any order, on any thread.
void run_chunk_on_tiles(const Plan& plan, std::int64_t chunk) noexcept;
void run_chunk_emulated(const Plan& plan, std::int64_t chunk) noexcept;

}  // namespace heddle::cpu::amx
