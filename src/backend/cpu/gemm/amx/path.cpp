#include <algorithm>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/turns.h"
#include "backend/cpu/threads.h"

namespace heddle::cpu {
namespace {

// Blocks that a thread packs at a time: enough to outweigh handing them out, at most 128 KiB of
// them, and in between a number that two, four or eight threads share evenly.
std::int64_t blocks_per_chunk(std::int64_t blocks) {
  return std::clamp<std::int64_t>(blocks / 16, 8, 64);
}

std::size_t packed_bytes(std::int64_t k, std::int64_t n) {
  return static_cast<std::size_t>(amx::blocks_of(k) * amx::blocks_of(n) * amx::kBlockElements * 2);
}

void pack_b(std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst) {
  const std::int64_t blocks = amx::blocks_of(k) * amx::blocks_of(n);
  parallel_ranges(blocks, blocks_per_chunk(blocks), [&](std::int64_t first, std::int64_t last) {
    amx::pack_b_blocks(k, n, b, first, last, static_cast<std::uint16_t*>(dst));
  });
}

using RunChunk = void (*)(const amx::Plan&, std::int64_t) noexcept;

// The job with B packed, unless units pack their own; `before`: the one before it, if any.
GemmJob prepared(GemmJob job, const GemmJob* before) {
  if (job.packed_b != nullptr || amx::packs_own_b(job)) return job;
  if (before == nullptr || !packed_before(*before, job))
    pack_b(job.k, job.n, job.b, job.room_for_b);
  job.packed_b = job.room_for_b;
  return job;
}

template <RunChunk run_chunk>
void run(const GemmJob& job) {
  const amx::Plan plan = amx::make_plan(prepared(job, nullptr), thread_count());
  if (plan.chunks == 0) return;
  parallel_chunks(plan.chunks, [&](std::int64_t chunk) { run_chunk(plan, chunk); });
}

template <RunChunk run_chunk>
void run_all(std::span<const GemmJob> jobs) {
  const GemmJob* const first = jobs.data();
  const auto count = static_cast<std::int64_t>(jobs.size());
  for (std::int64_t begin = 0; begin < count; begin += kTogether) {
    const std::int64_t group = count - begin < kTogether ? count - begin : kTogether;
    amx::Plan plans[kTogether];
    std::int64_t chunks[kTogether];
    for (std::int64_t i = 0; i < group; ++i) {
      const GemmJob* const before = i > 0 ? &plans[i - 1].job : nullptr;
      plans[i] = amx::make_plan(prepared(first[begin + i], before), thread_count());
      chunks[i] = plans[i].chunks;
    }
    run_together(chunks, group,
                 [&](std::int64_t i, std::int64_t chunk) { run_chunk(plans[i], chunk); });
  }
}

}  // namespace

const GemmPath& amx_bf16_path() {
  static constexpr GemmPath path{packed_bytes, pack_b, run<amx::run_chunk_on_tiles>,
                                 run_all<amx::run_chunk_on_tiles>};
  return path;
}

const GemmPath& amx_bf16_path_emulated() {
  static constexpr GemmPath path{packed_bytes, pack_b, run<amx::run_chunk_emulated>,
                                 run_all<amx::run_chunk_emulated>};
  return path;
}

}  // namespace heddle::cpu
