// Planning and sharing of work, compiled for any machine, and the choice of a path.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "backend/cpu/f64.h"
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/gemm/operands.h"
#include "backend/cpu/gemm/paths.h"
#include "backend/cpu/gemm/together.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/threads.h"
#include "base/divide.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

// A thread's scratch holds a block of A, one of B and one of sums.
BlockScratch block_scratch() noexcept {
  static_assert(kScratchABytes + kScratchBBytes + kScratchSumBytes <= kThreadScratchBytes);
  std::byte* const scratch = thread_scratch();
  return {.packed_a = scratch,
          .packed_b = scratch + kScratchABytes,
          .sums = scratch + kScratchABytes + kScratchBBytes};
}

// ---- planning -----------------------------------------------------------------------------------

// How C is cut. By shape alone: neither the sums nor the cut depend on the number of threads.
struct Cut {
  std::int64_t rows, columns;  // of one rectangle
  std::int64_t row_blocks, column_blocks;
  std::int64_t blocks;  // in all batches
  std::int64_t grain;   // rectangles that one chunk computes

  CRange range(const GemmJob& job, std::int64_t i) const {
    const std::int64_t column = i % column_blocks * columns;
    const std::int64_t row = i / column_blocks % row_blocks * rows;
    return {.batch = i / (column_blocks * row_blocks),
            .row_begin = row,
            .row_end = std::min(row + rows, job.m),
            .column_begin = column,
            .column_end = std::min(column + columns, job.n)};
  }
};

double operations(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(std::max<std::int64_t>(k, 1));
}

// Does every rectangle pack its columns of B itself? In a small product sharing them would cost
// more: another meeting of the threads, and half of what a core reads was written by another one.
bool packs_own_b(const Kernels& kernels, const GemmJob& job) {
  constexpr double kSmall = 1e8;  // floating-point operations
  return job.packed_b == nullptr && job.batch == 1 && !kernels.stored_b && !kernels.reads_b(job) &&
         operations(job.m, job.n, job.k) <= kSmall;
}

// The width of `blocks` blocks of columns: whole panels, unless that makes one much larger.
std::int64_t block_columns(const Kernels& kernels, std::int64_t n, std::int64_t blocks) {
  const auto width = [&](std::int64_t step) { return ceil_div(ceil_div(n, step), blocks) * step; };
  const std::int64_t whole = width(kernels.columns), even = width(kernels.column_step);
  return whole * 32 <= even * 33 ? whole : even;
}

Cut cut(const Kernels& kernels, const GemmJob& job) {
  // Enough rectangles for many threads and for uneven ones, as long as each is worth its start,
  // which is more where it packs both of its operands.
  constexpr std::int64_t kEnough = 32;
  constexpr double kWorthStarting = 2e5;  // floating-point operations
  const double worth_splitting = packs_own_b(kernels, job) ? 1.5e7 : 3e6;
  // A product of few rows waits for B, as long as this many rows would compute.
  constexpr std::int64_t kRowsForB = 8;
  // So few rows are not cut, columns are: low tiles load more for each product, and a B that is not
  // in the caches would be read from memory once for each block of rows. Sixteen texts that are
  // written together were two blocks of them.
  constexpr std::int64_t kFewRows = 32;
  Cut c{};
  c.row_blocks = ceil_div(job.m, kBlockRows);
  c.column_blocks = ceil_div(job.n * kernels.sum_bytes, kBlockColumnBytes);
  for (;;) {
    c.rows = ceil_div(job.m, c.row_blocks);
    c.columns = block_columns(kernels, job.n, c.column_blocks);
    c.blocks = job.batch * c.row_blocks * c.column_blocks;
    const double work = operations(std::max(c.rows, kRowsForB), c.columns, job.k);
    c.grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kWorthStarting / work));
    const bool tall = c.rows > std::max(kernels.rows, kFewRows), wide = c.columns > kernels.columns;
    if (c.blocks >= kEnough || work < worth_splitting || !(tall || wide)) break;
    // Powers of two, which any two, four or eight threads share evenly. Rows first, because two
    // rectangles side by side pack the same rows of A twice; but squares where B is not packed
    // beforehand either.
    const bool rows = tall && (!wide || job.packed_b != nullptr || c.rows >= c.columns);
    std::int64_t& blocks = rows ? c.row_blocks : c.column_blocks;
    blocks = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(blocks) + 1));
  }
  // Whole tiles where so many blocks are left that a smaller last one does not matter.
  if (c.blocks >= kEnough / 2) c.rows = ceil_div(c.rows, kernels.rows) * kernels.rows;
  // Rounding up may have left the last blocks empty.
  c.row_blocks = ceil_div(job.m, c.rows);
  c.column_blocks = ceil_div(job.n, c.columns);
  c.blocks = job.batch * c.row_blocks * c.column_blocks;
  return c;
}

// ---- one path -----------------------------------------------------------------------------------

void check(const Kernels& kernels, const GemmJob& job) {
  const bool wide = kernels.sum_bytes == 8;
  const bool known =
      wide ? job.c_dtype == DType::f64 : job.c_dtype == DType::f32 || job.c_dtype == DType::bf16;
  if (!known)
    fail(ErrorCode::dtype_mismatch, "gemm", "element type of C", wide ? "f64" : "f32 or bf16",
         to_string(job.c_dtype));
  if (job.epilogue.accumulate && job.c_dtype == DType::bf16)
    fail(ErrorCode::dtype_mismatch, "gemm", "accumulation into C", "f32 or f64", "bf16");
}

void check_b(const MatrixRef& b) {
  if (b.dtype != DType::f32 && b.dtype != DType::bf16 && b.dtype != DType::f64)
    fail(ErrorCode::dtype_mismatch, "gemm", "element type of B", "f32, bf16 or f64",
         to_string(b.dtype));
}

template <const Kernels& kernels>
struct Path {
  static std::size_t panel_bytes(std::int64_t k, std::int64_t n) {
    const std::int64_t depth = ceil_div(k, kernels.pair) * kernels.pair;
    const std::int64_t width = ceil_div(n, kernels.columns) * kernels.columns;
    return static_cast<std::size_t>(depth * width * kernels.element_bytes);
  }
  static std::size_t packed_bytes(std::int64_t k, std::int64_t n) {
    return round_up(panel_bytes(k, n), std::size_t{kLineBytes});
  }

  static void pack_b(std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst) {
    check_b(b);
    const std::int64_t panels = ceil_div(n, kernels.columns);
    const std::int64_t depth_blocks = ceil_div(k, kernels.block_depth);
    // Up to 8 panels a chunk (256 or 384 columns), fewer where chunks are few; tiny matrices are
    // not worth waking anybody up.
    const std::int64_t width = std::clamp<std::int64_t>(panels * depth_blocks / 16, 1, 8);
    const std::int64_t groups = ceil_div(panels, width);
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(k * n, 1));
    parallel_ranges(groups * depth_blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t panel = i % groups * width;
        const PanelRange range{i / groups, panel * kernels.columns,
                               std::min(width, panels - panel)};
        kernels.pack_b(k, n, b, range, dst);
      }
    });
    // Behind the last panel, so that equal matrices are packed to equal bytes.
    const std::size_t written = panel_bytes(k, n);
    std::fill_n(static_cast<char*>(dst) + written, packed_bytes(k, n) - written, '\0');
  }

  static bool empty(const GemmJob& job) { return job.m <= 0 || job.n <= 0 || job.batch <= 0; }

  // The job with B packed, unless rectangles read it in place or pack their own; `before`: the one
  // before it, if any.
  static GemmJob prepared(GemmJob job, const GemmJob* before) {
    check(kernels, job);
    if (job.packed_b == nullptr) check_b(job.b);
    if (empty(job) || job.packed_b != nullptr || kernels.reads_b(job) || packs_own_b(kernels, job))
      return job;
    if (before == nullptr || !packed_before(*before, job))
      pack_b(job.k, job.n, job.b, job.room_for_b);
    job.packed_b = job.room_for_b;
    return job;
  }

  static void run_blocks(const GemmJob& job, const Cut& plan, std::int64_t chunk) {
    const BlockScratch own = block_scratch();
    const std::int64_t first = chunk * plan.grain;
    const std::int64_t last = std::min(first + plan.grain, plan.blocks);
    for (std::int64_t i = first; i < last; ++i) kernels.block(job, plan.range(job, i), own);
  }

  static void run(const GemmJob& given) {
    const GemmJob job = prepared(given, nullptr);
    if (empty(job)) return;
    const Cut plan = cut(kernels, job);
    parallel_chunks(ceil_div(plan.blocks, plan.grain),
                    [&](std::int64_t chunk) { run_blocks(job, plan, chunk); });
  }

  static void run_all(std::span<const GemmJob> given, const OtherWork* other) {
    run_in_groups(given, other, run_group);
  }

  static void run_group(std::span<const GemmJob> given, const OtherWork* other) {
    GemmJob jobs[kTogether];
    Cut plans[kTogether];
    std::int64_t chunks[kTogether], count = 0;
    for (const GemmJob& each : given) {
      const GemmJob job = prepared(each, count > 0 ? &jobs[count - 1] : nullptr);
      if (empty(job)) continue;
      jobs[count] = job;
      plans[count] = cut(kernels, job);
      chunks[count] = ceil_div(plans[count].blocks, plans[count].grain);
      ++count;
    }
    run_together(chunks, count, other,
                 [&](std::int64_t i, std::int64_t chunk) { run_blocks(jobs[i], plans[i], chunk); });
  }

  static constexpr GemmPath kPath = {packed_bytes, pack_b, run, run_all};
};

struct Choice {
  const Kernels& kernels;
  const GemmPath& path;
};

template <const Kernels& kernels>
constexpr Choice kChoice = {kernels, Path<kernels>::kPath};

// That of the first level that `isa` has.
template <class... Level>
Choice highest(Isa isa, Levels<Level...>) {
  const Choice* found = nullptr;
  const auto look = [&](Isa level, const Choice& choice) {
    if (found == nullptr && isa >= level) found = &choice;
  };
  (look(Level::kLevel, kChoice<Level::kKernels>), ...);
  return *found;
}

// Set by add_f64_products(), which a program may be linked without.
Choice (*f64_choice)(Isa isa) = nullptr;

Choice native_f64_choice(Isa isa) { return highest(isa, F64Levels()); }

bool on_tiles(Isa isa, Operands operands) {
  return kHasTiles && isa >= Isa::amx && operands == DType::bf16;
}

Choice choice_of(Isa isa, Operands operands) {
  if (operands == Operands{DType::f32, DType::bf16}) return highest(isa, F32ByBf16Levels());
  if (operands.a != operands.b)
    fail(ErrorCode::dtype_mismatch, "gemm", "operand types", "two alike, or f32 and bf16",
         std::string(to_string(operands.a)) + " and " + std::string(to_string(operands.b)));
  switch (operands.a) {
    case DType::f32: return highest(isa, F32Levels());
    case DType::f64:
      check_f64("gemm", DType::f64);
      open_f64();
      return f64_choice(isa);
    case DType::bf16: return highest(isa, Bf16Levels());
    default: break;
  }
  fail(ErrorCode::dtype_mismatch, "gemm", "operand type", "f32, bf16 or f64",
       to_string(operands.a));
}

// As amx/pack.h lays it out.
void unpack_tiles(const PackedMatrix& packed, std::int64_t column, std::uint16_t* to) {
  constexpr std::int64_t kBlock = amx::kBlock, kTile = kBlock / 2;  // a tile: 16 columns, 16 pairs
  const auto* panel = static_cast<const std::uint16_t*>(packed.data) +
                      column / kBlock * amx::blocks_of(packed.k) * amx::kBlockElements +
                      column % kBlock / kTile * (amx::kBlockElements / 2) + column % kTile * 2;
  for (std::int64_t i = 0; i < packed.k; ++i)
    to[i] = panel[i / kBlock * amx::kBlockElements + i % kBlock / 2 * kBlock + i % 2];
}

}  // namespace

void add_f64_products() { f64_choice = native_f64_choice; }

const GemmPath& gemm_path(Isa isa, Operands operands) {
  if constexpr (kHasTiles)
    if (on_tiles(isa, operands)) return amx_bf16_path();
  return choice_of(isa, operands).path;
}

const GemmPath& gemm_path(Isa isa, DType operand) { return gemm_path(isa, Operands{operand}); }

void unpack_columns(Isa isa, Operands operands, const PackedMatrix& packed, std::int64_t begin,
                    std::int64_t end, void* to) {
  const auto bytes = packed.k * static_cast<std::int64_t>(size_of(operands.b));
  auto* out = static_cast<std::byte*>(to);
  for (std::int64_t column = begin; column < end; ++column, out += bytes)
    if (on_tiles(isa, operands))
      unpack_tiles(packed, column, reinterpret_cast<std::uint16_t*>(out));
    else
      choice_of(isa, operands).kernels.unpack_column(packed.k, packed.n, packed.data, column, out);
}

}  // namespace heddle::cpu
