#include "backend/cpu/gemm/amx/split_k.h"

#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/unit.h"

namespace heddle::cpu::amx {
namespace {

constexpr std::int64_t kLeastSteps = 8;  // of 32 k

bool only_sums(const GemmJob& job) {
  const Epilogue& e = job.epilogue;
  return job.c_dtype == DType::f32 && e.bias == nullptr && e.activation == Activation::none &&
         e.derivative == nullptr && e.factor == nullptr && e.residual == nullptr;
}

const void* advanced(const MatrixRef& matrix, std::int64_t elements) {
  return static_cast<const char*>(matrix.data) +
         elements * static_cast<std::int64_t>(size_of(matrix.dtype));
}

}  // namespace

bool sums_in_halves(const GemmJob& job) noexcept {
  if (job.packed_b != nullptr || !packs_own_b(job) || !only_sums(job)) return false;
  // Sums are written and read once more, in twice as many bytes as elements of the operands.
  const bool fewer_bytes = job.k * (job.m + job.n) >= 4 * job.m * job.n;
  return blocks_of(job.k) >= kLeastSteps && fewer_bytes &&
         job.m * job.n * 4 <= static_cast<std::int64_t>(kHalfSumBytes);
}

HalvedProduct::HalvedProduct(const GemmJob& job, float* sums, int threads) noexcept
    : job_(job), sums_(sums) {
  constexpr int kPieces = 2;  // at least, so that neither thread waits for the other
  const std::int64_t cut = blocks_of(job.k) / 2 * kBlock;
  GemmJob first = job, second = job;
  first.k = cut;
  second.k = job.k - cut;
  second.a.data = advanced(job.a, cut * job.a.col_stride);
  second.b.data = advanced(job.b, cut * job.b.row_stride);
  second.c = sums;
  second.c_row_stride = job.n;
  second.epilogue.accumulate = false;
  // A half of K is for a half of the threads.
  first_ = make_plan(first, (threads + 1) / 2, kPieces);
  second_ = make_plan(second, (threads + 1) / 2, kPieces);
  cut_like(first_, second_);
}

void HalvedProduct::share_own_b(const HalvedProduct& before) noexcept {
  if (shares_own_b(before.first_, first_)) first_.b_id = before.first_.b_id;
  if (shares_own_b(before.second_, second_)) second_.b_id = before.second_.b_id;
}

// The plan of a half that adds the other one on its way to C.
Plan HalvedProduct::added(Half half) const noexcept {
  Plan plan = half == Half::first ? first_ : second_;
  plan.job.c = job_.c;
  plan.job.c_row_stride = job_.c_row_stride;
  plan.job.epilogue = job_.epilogue;
  plan.stream = false;  // was decided for another C
  if (half == Half::first) {
    plan.job.epilogue.residual = sums_;
    plan.job.epilogue.residual_stride = job_.n;
  } else {
    plan.job.epilogue.accumulate = true;
  }
  return plan;
}

void HalvedProduct::run(std::int64_t chunk, RunChunk run_chunk) noexcept {
  const Half half = chunk < first_.chunks ? Half::first : Half::second;
  const std::int64_t piece = half == Half::first ? chunk : chunks() - 1 - chunk;
  // (C + s1) + s2 cannot begin with s1 + s2.
  const bool may_add = half == Half::second || !job_.epilogue.accumulate;
  if (may_add && meeting_.other_is_there(half, piece)) {
    run_chunk(added(half), piece);
    return;
  }
  run_chunk(half == Half::first ? first_ : second_, piece);
  if (meeting_.arrive(half, piece)) add_sums(piece);
}

// C += sums for a piece, rounded as in added().
void HalvedProduct::add_sums(std::int64_t piece) const noexcept {
  const FlushDenormals flush;
  const Unit u = unit_of(first_, piece);
  const auto end = [](std::int64_t blocks, std::int64_t most) noexcept {
    return blocks * kBlock < most ? blocks * kBlock : most;
  };
  const std::int64_t last_row = end(u.first_row + u.rows, job_.m);
  const std::int64_t column = u.first_panel * kBlock;
  const std::int64_t columns = end(u.first_panel + u.panels, job_.n) - column;
  for (std::int64_t row = u.first_row * kBlock; row < last_row; ++row) {
    float* c = static_cast<float*>(job_.c) + row * job_.c_row_stride + column;
    const float* more = sums_ + row * job_.n + column;
    for (std::int64_t i = 0; i < columns; ++i) c[i] += more[i];
  }
}

}  // namespace heddle::cpu::amx
