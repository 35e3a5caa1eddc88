#include <algorithm>

#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/halves.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/amx/scratch.h"
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

// A product among those that run together. If K is summed in halves it has a plan for each, and the
// chunks of the second follow those of the first.
struct Turn {
  amx::Plan first, second;
  float* sums = nullptr;  // of the second half
  std::int64_t chunks() const { return first.chunks + second.chunks; }
};

Turn make_turn(const GemmJob& job, float* room) {
  const int threads = thread_count();
  Turn turn;
  if (amx::sums_in_halves(job)) {
    const amx::Halves halves = amx::halves_of(job, room);
    // A half of K is for a half of the threads.
    turn.first = amx::make_plan(halves.first, (threads + 1) / 2);
    turn.second = amx::make_plan(halves.second, (threads + 1) / 2);
    turn.sums = room;
  } else {
    turn.first = amx::make_plan(job, threads);
  }
  return turn;
}

void share_own_b(const Turn& before, Turn& turn) {
  if (amx::shares_own_b(before.first, turn.first)) turn.first.b_id = before.first.b_id;
  if (amx::shares_own_b(before.second, turn.second)) turn.second.b_id = before.second.b_id;
}

template <RunChunk run_chunk>
void run_group(std::span<const GemmJob> jobs) {
  Turn turns[kTogether];
  std::int64_t chunks[kTogether], pieces[kTogether];
  const auto count = static_cast<std::int64_t>(jobs.size());
  bool halves = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const Turn* const before = i > 0 ? &turns[i - 1] : nullptr;
    const GemmJob job = prepared(jobs[static_cast<std::size_t>(i)],
                                 before != nullptr ? &before->first.job : nullptr);
    turns[i] = make_turn(job, amx::room_for_half_sums(i));
    if (before != nullptr) share_own_b(*before, turns[i]);
    chunks[i] = turns[i].chunks();
    pieces[i] = turns[i].sums != nullptr ? amx::pieces_to_add(job) : 0;
    halves = halves || pieces[i] > 0;
  }
  run_together(chunks, count, [&](std::int64_t i, std::int64_t chunk) {
    const Turn& turn = turns[i];
    chunk < turn.first.chunks ? run_chunk(turn.first, chunk)
                              : run_chunk(turn.second, chunk - turn.first.chunks);
  });
  if (!halves) return;
  run_together(pieces, count, [&](std::int64_t i, std::int64_t piece) {
    amx::add_second_half(turns[i].first.job, turns[i].sums, piece);
  });
}

template <RunChunk run_chunk>
void run(const GemmJob& job) {
  run_group<run_chunk>({&job, 1});
}

template <RunChunk run_chunk>
void run_all(std::span<const GemmJob> jobs) {
  for (; jobs.size() > kTogether; jobs = jobs.subspan(kTogether))
    run_group<run_chunk>(jobs.first(kTogether));
  run_group<run_chunk>(jobs);
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
