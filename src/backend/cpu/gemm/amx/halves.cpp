#include "backend/cpu/gemm/amx/halves.h"

#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"

namespace heddle::cpu::amx {
namespace {

constexpr std::int64_t kLeastSteps = 8;  // of 32 k

bool only_sums(const GemmJob& job) {
  const Epilogue& e = job.epilogue;
  return job.c_dtype == DType::f32 && e.bias == nullptr && e.activation == Activation::none &&
         e.derivative == nullptr && e.residual == nullptr;
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

Halves halves_of(const GemmJob& job, float* sums) noexcept {
  const std::int64_t cut = blocks_of(job.k) / 2 * kBlock;
  Halves h{job, job};
  h.first.k = cut;
  h.second.k = job.k - cut;
  h.second.a.data = advanced(job.a, cut * job.a.col_stride);
  h.second.b.data = advanced(job.b, cut * job.b.row_stride);
  h.second.c = sums;
  h.second.c_row_stride = job.n;
  h.second.epilogue.accumulate = false;
  return h;
}

std::int64_t pieces_to_add(const GemmJob& job) noexcept { return blocks_of(job.m); }

void add_second_half(const GemmJob& job, const float* sums, std::int64_t piece) noexcept {
  const std::int64_t begin = piece * kBlock;
  const std::int64_t end = begin + kBlock < job.m ? begin + kBlock : job.m;
  for (std::int64_t row = begin; row < end; ++row) {
    float* c = static_cast<float*>(job.c) + row * job.c_row_stride;
    const float* more = sums + row * job.n;
    for (std::int64_t i = 0; i < job.n; ++i) c[i] += more[i];
  }
}

}  // namespace heddle::cpu::amx
