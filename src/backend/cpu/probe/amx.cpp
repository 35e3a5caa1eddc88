#include "backend/cpu/probe/amx.h"

#include <immintrin.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/threads.h"
#include "backend/cpu/tiles/tile_state.h"

namespace heddle::cpu {
namespace {

constexpr double kFlopsPerRound = 4 * 2.0 * 16 * 16 * 32;  // four products of 16 × 16 × 32
constexpr int kRoundsPerLook = 200;                        // at the clock: 13,000 cycles
constexpr double kWaitForOthers = 1e-3;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Operands for four tiles. On zeros the tiles draw less power and run up to a quarter faster, which
// no product ever does.
struct alignas(64) TileData {
  std::uint16_t values[4][512];
  TileData() {
    for (int t = 0; t < 4; ++t)
      for (int i = 0; i < 512; ++i)  // bf16 between 0.5 and 1, of either sign
        values[t][i] = static_cast<std::uint16_t>(0x3f00 | (i * 37 + t * 11) % 128 |
                                                  (i % 3 == 0 ? 0x8000 : 0));
  }
};

// The only function here that uses tiles: the file needs no compiler flags of its own.
[[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] double flops_per_second_here(
    const TileData& data, double seconds) {
  const TileConfig config;
  asm volatile("" : : "m"(config), "m"(data) : "memory");
  amx::give_back_tiles();  // not needed after the probe
  _tile_loadconfig(&config);
  _tile_loadd(4, data.values[0], 64);
  _tile_loadd(5, data.values[1], 64);
  _tile_loadd(6, data.values[2], 64);
  _tile_loadd(7, data.values[3], 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  double rounds = 0, passed = 0;
  const double start = now();
  do {
    for (int i = 0; i < kRoundsPerLook; ++i) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    rounds += kRoundsPerLook;
    passed = now() - start;
  } while (passed < seconds);
  _tile_release();
  return rounds * kFlopsPerRound / passed;
}

}  // namespace

double amx_bf16_peak(double seconds) {
  static const TileData data;
  const int threads = thread_count();
  std::atomic<int> here{0};
  std::atomic<double> total{0.0};
  parallel_chunks(threads, [&](std::int64_t) {
    // Together, since cores may slow each other down; but not for ever, should a thread be missing.
    here.fetch_add(1);
    const double start = now();
    while (here.load() < threads && now() - start < kWaitForOthers) _mm_pause();
    const double rate = flops_per_second_here(data, seconds);
    double sum = total.load();
    while (!total.compare_exchange_weak(sum, sum + rate)) {
    }
  });
  return total.load();
}

}  // namespace heddle::cpu
