// Brings memory that will be needed later into L2, a few lines with every step of the tiles.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "base/divide.h"

namespace heddle::cpu::amx {

class PrefetchStream {
 public:
  // `rows` rows of `lines` cache lines each, spread over `steps` calls of step().
  void start(const void* data, std::int64_t row_bytes, std::int64_t lines, std::int64_t rows,
             std::int64_t steps) noexcept {
    row_ = static_cast<const char*>(data);
    row_bytes_ = row_bytes;
    lines_ = lines;
    rows_left_ = lines > 0 ? rows : 0;
    line_ = 0;
    per_step_ = ceil_div(lines * rows, steps);
  }
  void stop() noexcept { rows_left_ = 0; }

  // At most one row at a time: a few lines short of the plan does no harm, a slow loop would.
  [[gnu::always_inline]] void step() noexcept {
    if (rows_left_ <= 0) return;
    const std::int64_t left = lines_ - line_;
    const std::int64_t count = per_step_ < left ? per_step_ : left;
    const char* p = row_ + line_ * 64;
    for (std::int64_t i = 0; i < count; ++i) _mm_prefetch(p + i * 64, _MM_HINT_T1);
    line_ += count;
    if (count == left) {
      line_ = 0;
      row_ += row_bytes_;
      --rows_left_;
    }
  }

 private:
  const char* row_ = nullptr;
  std::int64_t row_bytes_ = 0, lines_ = 0, rows_left_ = 0, line_ = 0, per_step_ = 0;
};

}  // namespace heddle::cpu::amx
