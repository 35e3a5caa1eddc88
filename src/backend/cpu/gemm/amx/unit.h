// The common start of both kernels (kernel.h, short_kernel.h).
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/plan.h"

namespace heddle::cpu::amx {

// While it lives, results too small for a normal number become zero, as in the tiles. Far out an
// activation would make many of them, at more than a hundred cycles each.
class FlushDenormals {
 public:
  FlushDenormals() noexcept : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

// A rectangle of C, all counts in blocks of 32.
struct Unit {
  std::int64_t batch = 0, m_index = 0, n_index = 0;
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_panel = 0, panels = 0;
};

inline Unit unit_of(const Plan& p, std::int64_t index) noexcept {
  const auto smaller = [](std::int64_t a, std::int64_t b) noexcept { return a < b ? a : b; };
  Unit u;
  u.n_index = index % p.n_units;
  u.m_index = index / p.n_units % p.m_units;
  u.batch = index / p.n_units / p.m_units;
  u.first_row = u.m_index * p.m_unit;
  u.rows = smaller(p.m_unit, p.row_blocks - u.first_row);
  u.first_panel = u.n_index * p.n_unit;
  u.panels = smaller(p.n_unit, p.panels - u.first_panel);
  return u;
}

}  // namespace heddle::cpu::amx
