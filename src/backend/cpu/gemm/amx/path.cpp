#include <algorithm>
#include <optional>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/amx/scratch.h"
#include "backend/cpu/gemm/amx/split_k.h"
#include "backend/cpu/gemm/together.h"
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

// A product among those that run together.
struct Turn {
  amx::Plan plan;
  std::optional<amx::HalvedProduct> halved;  // instead
  std::int64_t chunks() const { return halved ? halved->chunks() : plan.chunks; }
};

void share_own_b(const Turn& before, Turn& turn) {
  if (before.halved && turn.halved)
    turn.halved->share_own_b(*before.halved);
  else if (!before.halved && !turn.halved && amx::shares_own_b(before.plan, turn.plan))
    turn.plan.b_id = before.plan.b_id;
}

template <RunChunk run_chunk>
void run_group(std::span<const GemmJob> jobs, const OtherWork* other) {
  Turn turns[kTogether];
  GemmJob ready[kTogether];
  std::int64_t chunks[kTogether];
  const int threads = thread_count();
  const auto count = static_cast<std::int64_t>(jobs.size());
  for (std::int64_t i = 0; i < count; ++i) {
    Turn& turn = turns[i];
    ready[i] = prepared(jobs[static_cast<std::size_t>(i)], i > 0 ? &ready[i - 1] : nullptr);
    if (amx::sums_in_halves(ready[i]))
      turn.halved.emplace(ready[i], amx::room_for_half_sums(i), threads);
    else
      turn.plan = amx::make_plan(ready[i], threads);
    if (i > 0) share_own_b(turns[i - 1], turn);
    chunks[i] = turn.chunks();
  }
  run_together(chunks, count, other, [&](std::int64_t i, std::int64_t chunk) {
    Turn& turn = turns[i];
    turn.halved ? turn.halved->run(chunk, run_chunk) : run_chunk(turn.plan, chunk);
  });
}

template <RunChunk run_chunk>
void run(const GemmJob& job) {
  run_group<run_chunk>({&job, 1}, nullptr);
}

template <RunChunk run_chunk>
void run_all(std::span<const GemmJob> jobs, const OtherWork* other) {
  run_in_groups(jobs, other, run_group<run_chunk>);
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
