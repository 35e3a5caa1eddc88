// The epilogue of a finished 32 × 32 block of sums on its way to C.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu::amx {

// Pointers are to the block's first element; null where the job has none.
struct EpilogueTask {
  const float* sums = nullptr;  // four tiles of [16, 16]: left and right of rows 0-15, of 16-31
  char* c = nullptr;
  char* derivative = nullptr;
  const char* factor = nullptr;
  const char* residual = nullptr;
  const float* bias = nullptr;
  std::int64_t c_row_bytes = 0;  // of derivative and factor, too
  std::int64_t residual_row_bytes = 0;
  std::uint32_t columns = 0;  // bit i: column i exists
  bool accumulate = false;
  bool plain = false;   // 32 columns and nothing to do but to store them
  bool stream = false;  // stores past the caches: 32 columns, rows aligned to 64 bytes
};

// Rows [begin, end) of the block. Called a few rows at a time, between the steps of the next block,
// so that the vector units work while the tiles do.
using EpilogueRows = void (*)(const EpilogueTask& task, int begin, int end) noexcept;

EpilogueRows select_epilogue(DType c_dtype, Activation activation) noexcept;

// Makes streamed stores visible to other threads.
void finish_streaming() noexcept;

}  // namespace heddle::cpu::amx
