// Several products as one piece of work.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/threads.h"

namespace heddle::cpu {

// How many products share a piece of work at most; more are run in several.
inline constexpr std::int64_t kTogether = 8;

// Calls run(product, chunk) for chunks[product] chunks of each of `count` products, and what runs
// beside them, if anything. The pieces that are handed out have the same part of every product:
// then a thread, whose share is a run of pieces, computes of each what it would have alone.
template <class Run>
void run_together(const std::int64_t* chunks, std::int64_t count, const Beside* beside, Run run) {
  const std::int64_t others = beside != nullptr ? beside->chunks : 0;
  std::int64_t parts = others;
  for (std::int64_t i = 0; i < count; ++i) parts = chunks[i] > parts ? chunks[i] : parts;
  parallel_chunks(parts, [&](std::int64_t part) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t c = part * chunks[i] / parts; c < (part + 1) * chunks[i] / parts; ++c)
        run(i, c);
    for (std::int64_t c = part * others / parts; c < (part + 1) * others / parts; ++c)
      beside->run(c);
  });
}

// Have both the same B, as it lies in memory?
[[gnu::always_inline]] inline bool same_b(const GemmJob& before, const GemmJob& job) {
  return before.b.data == job.b.data && before.k == job.k && before.n == job.n &&
         before.b.dtype == job.b.dtype && before.b.row_stride == job.b.row_stride &&
         before.b.col_stride == job.b.col_stride;
}

// Does the room that `job` has for its B hold it already, packed for the one before?
[[gnu::always_inline]] inline bool packed_before(const GemmJob& before, const GemmJob& job) {
  return before.packed_b == job.room_for_b && same_b(before, job);
}

}  // namespace heddle::cpu
