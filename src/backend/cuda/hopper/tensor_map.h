// Descriptions of tensors from which the memory unit of sm_90a copies boxes (hopper.cuh).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace heddle::cuda {

// bf16, [batch, rows, heads, width]; strides in elements, those of the last dimension are 1. Boxes
// have 64 columns and `box_rows` rows of one head of one sequence.
struct MappedRows {
  const void* base = nullptr;
  std::int64_t batch = 0, rows = 0, heads = 0, width = 0;
  std::int64_t batch_stride = 0, row_stride = 0, head_stride = 0;
  int box_rows = 0;
};

// The base and all strides must be multiples of 16 bytes. Nothing may be empty. Rows outside of the
// tensor are read as zeros and not written; boxes lie in shared memory as wgmma.cuh wants them.
CUtensorMap map_of(const MappedRows& rows);

}  // namespace heddle::cuda
