#include "backend/cuda/hopper/tensor_map.h"

#include <cuda_runtime_api.h>

#include <string>

#include "backend/cuda/error.h"
#include "heddle/error.h"

namespace heddle::cuda {

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver is never linked: its function is asked for when the program runs.
Encode find_encode() {
  constexpr const char* kName = "cuTensorMapEncodeTiled";
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  HEDDLE_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(kName, &found, 12000, cudaEnableDefault, &result));
#else
  HEDDLE_CUDA_CHECK(cudaGetDriverEntryPoint(kName, &found, cudaEnableDefault, &result));
#endif
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    fail(ErrorCode::unsupported, "CUDA", "the NVIDIA driver lacks a function", kName, "nothing");
  return reinterpret_cast<Encode>(found);
}

}  // namespace

CUtensorMap map_of(const MappedRows& rows) {
  static const Encode encode = find_encode();
  constexpr cuuint64_t kElementBytes = 2;
  // Of one head or one sequence there is no next one: any stride will do.
  const auto bytes = [&](std::int64_t count, std::int64_t stride) {
    return count == 1 ? cuuint64_t{16} : static_cast<cuuint64_t>(stride) * kElementBytes;
  };
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(rows.width), static_cast<cuuint64_t>(rows.rows),
      static_cast<cuuint64_t>(rows.heads), static_cast<cuuint64_t>(rows.batch)};
  const cuuint64_t strides[] = {bytes(rows.rows, rows.row_stride),
                                bytes(rows.heads, rows.head_stride),
                                bytes(rows.batch, rows.batch_stride)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(rows.box_rows), 1, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(rows.base), sizes,
             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail(ErrorCode::failed, "CUDA", "the driver refused a tensor's map", "strides of 16 bytes",
         "error " + std::to_string(static_cast<int>(result)));
  return map;
}

}  // namespace heddle::cuda
