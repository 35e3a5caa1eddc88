// Memory traffic without arithmetic to speak of: what an op with the same reads and writes could
// reach at best.
#pragma once

#include <emmintrin.h>

#include <cstdint>

#include "backend/cpu/threads.h"

namespace heddle::bench {

// `reads` arrays are read; the first `writes` of them are written in place, or, where `out` is
// given, that one array is written instead.
struct Mix {
  int reads = 0;
  int writes = 0;
  float* arrays[4] = {};
  float* out = nullptr;
  bool streaming = false;  // writes to `out` pass by the cache
};

// Adds up what it reads and writes the sum; n must be a multiple of 16.
template <int kReads, int kWrites, bool kOut, bool kStreaming>
void pass(const Mix& mix, std::int64_t begin, std::int64_t end, float* sink) {
  __m128 total[4] = {_mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps()};
  for (std::int64_t i = begin; i < end; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const std::int64_t at = i + 4 * part;
      __m128 sum = _mm_load_ps(mix.arrays[0] + at);
      for (int r = 1; r < kReads; ++r) sum = _mm_add_ps(sum, _mm_load_ps(mix.arrays[r] + at));
      if constexpr (kOut && kStreaming)
        _mm_stream_ps(mix.out + at, sum);
      else if constexpr (kOut)
        _mm_store_ps(mix.out + at, sum);
      else if constexpr (kWrites == 0)
        total[part] = _mm_add_ps(total[part], sum);
      else
        for (int w = 0; w < kWrites; ++w) _mm_store_ps(mix.arrays[w] + at, sum);
    }
  }
  if constexpr (kStreaming) _mm_sfence();
  if constexpr (kWrites == 0 && !kOut) {
    const __m128 all = _mm_add_ps(_mm_add_ps(total[0], total[1]), _mm_add_ps(total[2], total[3]));
    if (_mm_cvtss_f32(all) == 0x1.2345p-100f) *sink = 1;  // keeps the loads
  }
}

template <int kReads, int kWrites, bool kOut, bool kStreaming>
void run(const Mix& mix, std::int64_t n) {
  static float sink = 0;
  cpu::parallel_ranges(n, 65536, [&](std::int64_t begin, std::int64_t end) {
    pass<kReads, kWrites, kOut, kStreaming>(mix, begin, end, &sink);
  });
}

inline void probe(const Mix& mix, std::int64_t n) {
  if (mix.out != nullptr) {
    if (mix.reads == 1)
      return mix.streaming ? run<1, 0, true, true>(mix, n) : run<1, 0, true, false>(mix, n);
    return mix.streaming ? run<2, 0, true, true>(mix, n) : run<2, 0, true, false>(mix, n);
  }
  if (mix.writes == 0) return run<1, 0, false, false>(mix, n);
  if (mix.writes == 1) return run<2, 1, false, false>(mix, n);
  if (mix.writes == 2) return run<3, 2, false, false>(mix, n);
  return run<4, 3, false, false>(mix, n);
}

}  // namespace heddle::bench
