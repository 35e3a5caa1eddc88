// Products with a small K in the simplest form: whole blocks, A in place, a packed B, at most a
// bias, a factor and a residual. One of their 2 × 2 blocks takes a few hundred cycles, so the
// decisions that kernel.h makes for each block would weigh: here the rows of the previous block are
// written by inlined code, in even parts after the steps of the next one.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/amx/rows.h"
#include "backend/cpu/gemm/amx/scratch.h"
#include "backend/cpu/gemm/amx/unit.h"

namespace heddle::cpu::amx {

template <class T, class Type, bool extras>
class ShortRunner {
 public:
  explicit ShortRunner(const Plan& plan) noexcept : plan_(plan), scratch_(amx_scratch()) {
    const GemmJob& job = plan.job;
    constexpr auto element = static_cast<std::int64_t>(sizeof(typename Type::Element));
    a_bytes_ = job.a.row_stride * 2;
    c_bytes_ = job.c_row_stride * element;
    residual_bytes_ = job.epilogue.residual_stride * element;
    per_step_ = plan.steps > 2 ? static_cast<int>((kBlock / (plan.steps - 1) + 4) & ~3) : 32;
  }

  void run(std::int64_t chunk) noexcept {
    const FlushDenormals flush;
    const std::int64_t begin = chunk * plan_.units_per_chunk;
    const std::int64_t last = begin + plan_.units_per_chunk;
    const std::int64_t end = last < plan_.units ? last : plan_.units;
    T::configure();
    for (std::int64_t u = begin; u < end; ++u) run_unit(unit_of(plan_, u));
    T::release();
    write_rows(32);
  }

 private:
  struct Block {
    std::int64_t row = 0, panel = 0;
  };

  // All panels of a block of rows, which stays in L1, before the next one.
  void run_unit(const Unit& u) noexcept {
    const std::int64_t count = u.rows * u.panels, steps = plan_.steps;
    Block at;
    const char *a = a_of(u, at), *b = b_of(u, at);
    T::load_kept_a0(a, a_row());
    T::load_b0(b);
    T::load_b1(b + kTile);
    T::load_kept_a1(a + 16 * a_bytes_, a_row());
    for (std::int64_t i = 0; i < count; ++i) {
      Block after = at;
      if (i + 1 < count && ++after.panel == u.panels) after = {at.row + 1, 0};
      // Behind the last block its own first tiles are loaded once more, for nothing.
      const char *next_a = a_of(u, after), *next_b = b_of(u, after);
      T::zero_c();
      for (std::int64_t s = 1; s < steps; ++s) {
        step(a + s * 64, b + s * 2 * kTile);
        // The sums were stored a moment ago: reading them in the first step would stall.
        if (s > 1) write_rows(row_ + per_step_);
      }
      step(next_a, next_b);
      write_rows(32);
      float* sums = scratch_.staging[staging_];
      staging_ ^= 1;
      T::store_c(sums);
      set_pending(u, at, sums);
      a = next_a;
      b = next_b;
      at = after;
    }
  }

  [[gnu::always_inline]] void step(const char* a, const char* b) const noexcept {
    T::dot_00();
    T::dot_01();
    T::load_kept_a0(a, a_row());
    T::dot_10();
    T::load_b0(b);
    T::dot_11();
    T::load_b1(b + kTile);
    T::load_kept_a1(a + 16 * a_bytes_, a_row());
  }

  // Up to row `end`, in fours.
  [[gnu::always_inline]] void write_rows(int end) noexcept {
    const int stop = end < pending_ ? end : pending_;
    for (; row_ < stop; row_ += 4) {
      const float* sums = sums_of_row(sums_, row_);
      for (int i = 0; i < 4; ++i)
        write(row_ + i, {_mm512_load_ps(sums + 16 * i), _mm512_load_ps(sums + 16 * i + 256)});
    }
    compiler_barrier();
  }

  [[gnu::always_inline]] void write(int r, Row row) const noexcept {
    if constexpr (extras) {
      const Columns all(~std::uint32_t{0});
      if (bias_ != nullptr) row = add(row, F32::load(reinterpret_cast<const char*>(bias_), all));
      if (factor_ != nullptr) row = multiply(row, Type::load(factor_ + r * c_bytes_, all));
      if (residual_ != nullptr) row = add(row, Type::load(residual_ + r * residual_bytes_, all));
    }
    Type::store(c_ + r * c_bytes_, row);
  }

  void set_pending(const Unit& u, const Block& at, const float* sums) noexcept {
    const Epilogue& e = plan_.job.epilogue;
    const std::int64_t row = (u.first_row + at.row) * kBlock;
    const std::int64_t column = (u.first_panel + at.panel) * kBlock;
    constexpr auto element = static_cast<std::int64_t>(sizeof(typename Type::Element));
    const std::int64_t batch = u.batch * plan_.job.c_batch_stride;
    sums_ = sums;
    c_ = static_cast<char*>(plan_.job.c) + row * c_bytes_ + (batch + column) * element;
    if constexpr (extras) {
      if (e.residual != nullptr)
        residual_ = static_cast<const char*>(e.residual) + row * residual_bytes_ +
                    (batch + column) * element;
      if (e.factor != nullptr)
        factor_ = static_cast<const char*>(e.factor) + row * c_bytes_ + (batch + column) * element;
      if (e.bias != nullptr) bias_ = static_cast<const float*>(e.bias) + column;
    }
    row_ = 0;
    pending_ = 32;
  }

  const char* a_of(const Unit& u, const Block& at) const noexcept {
    return static_cast<const char*>(plan_.job.a.data) + u.batch * plan_.job.a_batch_stride * 2 +
           (u.first_row + at.row) * kBlock * a_bytes_;
  }
  const char* b_of(const Unit& u, const Block& at) const noexcept {
    return static_cast<const char*>(plan_.job.packed_b) + u.batch * plan_.job.b_batch_stride +
           (u.first_panel + at.panel) * plan_.steps * 2 * kTile;
  }
  [[gnu::always_inline]] std::size_t a_row() const noexcept {
    return static_cast<std::size_t>(a_bytes_);
  }

  static constexpr std::int64_t kTile = 1024;  // bytes

  const Plan& plan_;
  Scratch& scratch_;
  std::int64_t a_bytes_, c_bytes_, residual_bytes_;  // of a row
  int per_step_;                                     // rows of the block before
  // Rows [row_, pending_) of the block before are still to be written.
  int row_ = 0, pending_ = 0, staging_ = 0;
  const float *sums_ = nullptr, *bias_ = nullptr;
  const char *factor_ = nullptr, *residual_ = nullptr;
  char* c_ = nullptr;
};

template <class T>
void run_short_chunk(const Plan& plan, std::int64_t chunk) noexcept {
  const Epilogue& e = plan.job.epilogue;
  const bool extras = e.bias != nullptr || e.factor != nullptr || e.residual != nullptr;
  if (plan.job.c_dtype == DType::bf16)
    extras ? ShortRunner<T, Bf16, true>(plan).run(chunk)
           : ShortRunner<T, Bf16, false>(plan).run(chunk);
  else
    extras ? ShortRunner<T, F32, true>(plan).run(chunk)
           : ShortRunner<T, F32, false>(plan).run(chunk);
}

}  // namespace heddle::cpu::amx
