// Several products as one piece of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/threads.h"

namespace heddle::cpu {

// How many products share a piece of work at most; more are run in several.
inline constexpr std::int64_t kTogether = 8;

// Calls run(product, chunk) for chunks[product] chunks of each of `count` products, and the work
// that runs alongside, if any. The pieces handed out have the same part of every product: then a
// thread, whose share is a run of pieces, computes of each what it would have alone.
template <class Run>
void run_together(const std::int64_t* chunks, std::int64_t count, const OtherWork* other, Run run) {
  const std::int64_t others = other != nullptr ? other->chunks : 0;
  std::int64_t parts = others;
  for (std::int64_t i = 0; i < count; ++i) parts = chunks[i] > parts ? chunks[i] : parts;
  parallel_chunks(parts, [&](std::int64_t part) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t c = part * chunks[i] / parts; c < (part + 1) * chunks[i] / parts; ++c)
        run(i, c);
    for (std::int64_t c = part * others / parts; c < (part + 1) * others / parts; ++c)
      other->run(c);
  });
}

// Are both sure to be cut into the same pieces? Paths look at shapes and at the layout of A.
[[gnu::always_inline]] inline bool cut_alike(const GemmJob& a, const GemmJob& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.batch == b.batch &&
         a.a.row_stride == b.a.row_stride && a.a.col_stride == b.a.col_stride &&
         a.c_dtype == b.c_dtype && a.packed_b != nullptr && b.packed_b != nullptr;
}

// How many of these jobs, from the first on, can run together.
[[gnu::always_inline]] inline std::size_t run_of(std::span<const GemmJob> jobs) {
  constexpr auto most = static_cast<std::size_t>(kTogether);
  std::size_t count = 0;
  for (; count < jobs.size() && count < most; ++count) {
    const GemmJob& job = jobs[count];
    for (const GemmJob& before : jobs.first(count))
      if (job.epilogue.residual != nullptr && job.epilogue.residual == before.c &&
          !cut_alike(before, job))
        return count;
  }
  return count;
}

// Calls run_group(jobs, other) for one run after another; `other` goes with the last.
template <class RunGroup>
[[gnu::always_inline]] inline void run_in_groups(std::span<const GemmJob> jobs,
                                                 const OtherWork* other, RunGroup run_group) {
  std::size_t count = run_of(jobs);
  for (; count < jobs.size(); jobs = jobs.subspan(count), count = run_of(jobs))
    run_group(jobs.first(count), nullptr);
  run_group(jobs, other);
}

// Do both have the same B in memory, with the same strides?
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
