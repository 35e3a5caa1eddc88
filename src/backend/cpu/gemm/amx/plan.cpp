#include "backend/cpu/gemm/amx/plan.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/scratch.h"
#include "backend/cpu/gemm/together.h"
#include "base/divide.h"

namespace heddle::cpu::amx {
namespace {

constexpr std::int64_t kBlockBytes = kBlockElements * 2;  // of an operand
constexpr std::int64_t kSumBytes = kBlockElements * 4;    // of partial sums
constexpr std::int64_t kL1B = 32 << 10;                   // a B that L1 can hold
// A B that needs no cutting: each thread reads all of it from its L2, and computes the rows that it
// has in other ops as well. Cut by columns, half of what it reads lies in another thread's cache.
constexpr std::int64_t kSmallB = 256 << 10;
constexpr std::int64_t kMinimumChunk = 192;   // steps: 12,000 cycles of tile work
constexpr std::int64_t kGoodChunk = 768;      // steps that dwarf the handing out
constexpr std::int64_t kSmallProduct = 2048;  // steps: too few to share a packed B
constexpr std::int64_t kShortSteps = 16;      // 32 rows of A in L1
constexpr std::int64_t kPanelsForACopy = 8;   // that use a copy of A before it pays
constexpr std::int64_t kNearB = 1 << 20;      // a B that L2 can hold
constexpr std::int64_t kRowsForFarB = 12;     // blocks of rows that make up for L3

// The size of equal pieces of `total`, none above `limit`.
std::int64_t even_split(std::int64_t total, std::int64_t limit) {
  limit = std::max<std::int64_t>(limit, 1);
  return std::max<std::int64_t>(ceil_div(total, ceil_div(std::max<std::int64_t>(total, 1), limit)),
                                1);
}

bool aligned(const void* p, std::int64_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % 64 == 0 && row_bytes % 64 == 0;
}

// Rows of tiles need K contiguous.
bool may_load_in_place(const Plan& p, const Tuning& t) {
  const MatrixRef& a = p.job.a;
  return t.pack_a != Choice::always && a.col_stride == 1 && a.row_stride >= 0;
}

void cut_k(Plan& p, const Tuning& t) {
  const std::int64_t most = static_cast<std::int64_t>(kPackedABytes) / kBlockBytes;
  const std::int64_t limit = p.steps * kBlock <= t.k_whole ? p.steps : t.k_outer / kBlock;
  p.outer = even_split(p.steps, std::min(limit, most));
  p.outer_count = std::max<std::int64_t>(ceil_div(p.steps, p.outer), 1);
  p.inner = even_split(p.outer, t.k_inner / kBlock);
}

// Rows per unit such that A stays in L2, then panels per unit such that there are enough chunks.
void cut_m_and_n(Plan& p, const Tuning& t, std::int64_t threads) {
  const std::int64_t batch = p.job.batch;
  const std::int64_t steps = std::max<std::int64_t>(p.steps, 1);
  const std::int64_t total = batch * p.row_blocks * p.panels * steps;
  const std::int64_t few = std::max({t.few_chunks, 2 * threads, std::int64_t{2}});
  const std::int64_t many = std::max({t.chunks, 4 * threads, std::int64_t{2}});
  const std::int64_t per_chunk =
      std::max({kMinimumChunk, std::min(kGoodChunk, total / few), total / many});
  const std::int64_t b_bytes = p.panels * p.steps * kBlockBytes;

  const std::int64_t in_l2 = std::max<std::int64_t>(t.a_bytes / (p.outer * kBlockBytes), 1);
  p.m_unit = even_split(p.row_blocks, in_l2);
  if (b_bytes <= kSmallB) {
    // Every thread can hold all of B: only the rows are shared out, in two chunks a thread at
    // least. With one, a core that a neighbour slows down would make the other wait.
    p.n_unit = p.panels;
    const std::int64_t size =
        std::max({kMinimumChunk, std::min(kGoodChunk, total / (2 * threads)), total / many});
    p.m_unit = even_split(p.row_blocks, std::min(in_l2, size / (p.panels * steps)));
  } else if (p.outer_count > 1) {
    // A goes by once per unit: wide units, as far as their partial sums fit.
    p.m_unit = even_split(p.row_blocks, std::min(in_l2, ceil_div(p.row_blocks * batch, few / 2)));
    const std::int64_t m_units = ceil_div(p.row_blocks, p.m_unit) * batch;
    const std::int64_t fits = t.partial_bytes / (p.m_unit * kSumBytes);
    p.n_unit = even_split(p.panels, std::min(fits, p.panels * m_units / (few / 2)));
  } else if (!p.load_in_place) {
    // A is packed before it is used, once per unit: few units per row. Where B is near, few rows
    // are enough for a unit.
    const std::int64_t least = b_bytes <= kNearB ? 1 : kRowsForFarB;
    const std::int64_t rows = std::max(p.row_blocks * batch / few, least);
    p.m_unit = even_split(p.row_blocks, std::min(in_l2, rows));
    const std::int64_t m_units = ceil_div(p.row_blocks, p.m_unit) * batch;
    p.n_unit = even_split(p.panels, p.panels * m_units / (few / 2));
  } else {
    p.n_unit = even_split(p.panels, per_chunk / (p.m_unit * steps));
  }
}

// Two chunks a thread, which share out the operand whose packing costs more: each thread packs the
// other one once.
void cut_for_own_b(Plan& p, std::int64_t threads, std::int64_t least) {
  static_assert(2 * (kSmallProduct / kMinimumChunk) <= kMostOwnUnits);
  const std::int64_t total = p.row_blocks * p.panels * p.steps;
  const std::int64_t chunks =
      std::clamp<std::int64_t>(total / kMinimumChunk, least, std::max(least, 2 * threads));
  const bool by_rows = 3 * p.row_blocks >= 2 * p.panels;  // a block of A costs 1.5 of B
  const std::int64_t m_units = std::min(by_rows ? chunks : 1, p.row_blocks);
  const std::int64_t n_units = std::min(ceil_div(chunks, m_units), p.panels);
  p.m_unit = even_split(p.row_blocks, ceil_div(p.row_blocks, m_units));
  p.n_unit = even_split(p.panels, ceil_div(p.panels, n_units));
}

void apply_overrides(Plan& p, const Tuning& t) {
  if (t.m_unit > 0) p.m_unit = even_split(p.row_blocks, t.m_unit / kBlock);
  if (t.n_unit > 0) p.n_unit = even_split(p.panels, t.n_unit / kBlock);
  // Whatever was asked for must fit into the scratch.
  const auto packed = static_cast<std::int64_t>(kPackedABytes);
  const auto partial = static_cast<std::int64_t>(kPartialBytes);
  p.m_unit = std::min({p.m_unit, packed / (p.outer * kBlockBytes), partial / kSumBytes});
  if (p.outer_count > 1) p.n_unit = std::min(p.n_unit, partial / (p.m_unit * kSumBytes));
}

bool is_short(const Plan& p) {
  const GemmJob& job = p.job;
  const Epilogue& e = job.epilogue;
  const bool whole = job.m % kBlock == 0 && job.n % kBlock == 0 && job.k % kBlock == 0;
  const bool simple = e.activation == Activation::none && e.derivative == nullptr && !e.accumulate;
  return whole && simple && p.load_in_place && !p.own_b && p.steps >= 2 && p.steps <= kShortSteps &&
         p.outer_count == 1 && p.inner == p.steps && !p.stream && p.defer;
}

bool wants_streaming(const Plan& p, const Tuning& t) {
  const GemmJob& job = p.job;
  if (t.stream == Choice::never || job.epilogue.accumulate) return false;
  const std::int64_t element = job.c_dtype == DType::bf16 ? 2 : 4;
  const bool fits =
      aligned(job.c, job.c_row_stride * element) && job.c_batch_stride * element % 64 == 0;
  if (t.stream == Choice::always) return fits;
  return fits && job.batch * job.m * job.n * element >= t.stream_bytes;
}

}  // namespace

Tuning& tuning() noexcept {
  static Tuning value;
  return value;
}

bool packs_own_b(const GemmJob& job) noexcept {
  const std::int64_t rows = blocks_of(job.m), panels = blocks_of(job.n), steps = blocks_of(job.k);
  const bool fits = std::max(rows, panels) * steps * kBlockBytes <=
                    static_cast<std::int64_t>(std::min(kPackedABytes, kPackedBBytes));
  return job.batch == 1 && steps >= kFeedAhead && steps * kBlock <= tuning().k_whole && fits &&
         rows * panels * steps <= kSmallProduct;
}

Plan make_plan(const GemmJob& job, int threads, std::int64_t least) noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const Tuning& t = tuning();
  Plan p;
  p.job = job;
  p.id = p.b_id = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  p.epilogue = select_epilogue(job.c_dtype, job.epilogue.activation);
  p.row_blocks = blocks_of(job.m);
  p.panels = blocks_of(job.n);
  p.steps = blocks_of(job.k);
  if (p.row_blocks == 0 || p.panels == 0 || job.batch <= 0) return p;

  p.load_in_place = may_load_in_place(p, t);
  const std::int64_t b_bytes = p.panels * p.steps * kBlockBytes;
  p.row_by_row = b_bytes <= kL1B && p.steps * kBlock <= std::min(t.k_inner, t.k_whole);
  cut_k(p, t);
  p.own_b = job.packed_b == nullptr;
  if (p.own_b) {
    p.inner = p.outer;
    cut_for_own_b(p, std::max(threads, 1), least);
  } else {
    cut_m_and_n(p, t, std::max(threads, 1));
    apply_overrides(p, t);
  }
  p.m_units = ceil_div(p.row_blocks, p.m_unit);
  p.n_units = ceil_div(p.panels, p.n_unit);
  p.units = job.batch * p.m_units * p.n_units;
  // Small products of a batch share a chunk.
  const std::int64_t unit_steps = p.m_unit * p.n_unit * std::max<std::int64_t>(p.steps, 1);
  p.units_per_chunk = p.own_b ? 1 : std::max<std::int64_t>(kMinimumChunk / unit_steps, 1);
  p.chunks = ceil_div(p.units, p.units_per_chunk);
  p.threads = std::max(threads, 1);
  // The units of one thread have the same rows as a rule and share a copy.
  const std::int64_t users = p.outer_count == 1 ? p.panels : p.n_unit;
  p.copy_a = t.pack_a == Choice::automatic && !p.row_by_row && users >= kPanelsForACopy;
  p.stream = wants_streaming(p, t);
  p.prefetch_a = t.prefetch_a;
  p.prefetch_b = t.prefetch_b && !p.row_by_row && !p.own_b;
  p.defer = t.defer;
  // Few steps have no room for calls between them; but an activation is too long for one go.
  p.at_once = p.inner == p.steps && job.epilogue.activation == Activation::none;
  p.defer_wait = t.defer_wait;
  p.is_short = is_short(p);
  return p;
}

void cut_like(const Plan& other, Plan& plan) noexcept {
  plan.m_unit = other.m_unit;
  plan.n_unit = other.n_unit;
  plan.m_units = other.m_units;
  plan.n_units = other.n_units;
  plan.units = other.units;
  plan.units_per_chunk = other.units_per_chunk;
  plan.chunks = other.chunks;
}

bool shares_own_b(const Plan& before, const Plan& plan) noexcept {
  return before.own_b && plan.own_b && before.n_unit == plan.n_unit && same_b(before.job, plan.job);
}

}  // namespace heddle::cpu::amx
