// The part of cuBLASLt's interface that Heddle calls, declared here so that no headers are needed.
// Numbers and layouts are those that CUDA 12 and 13 have in common.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::cuda::lt {

using Status = int;  // 0: success
using Handle = void*;
using Operation = void*;   // cublasLtMatmulDesc_t
using Layout = void*;      // cublasLtMatrixLayout_t
using Preference = void*;  // cublasLtMatmulPreference_t

struct Algorithm {
  std::array<std::uint64_t, 8> data;
};

struct Heuristic {
  Algorithm algorithm;
  std::size_t room_bytes;
  Status status;
  float waves;
  std::array<int, 4> reserved;
};
static_assert(sizeof(Heuristic) == 64 + 8 + 4 + 4 + 16);

inline constexpr int kComputeF32 = 68;  // CUBLAS_COMPUTE_32F: plain f32 sums, never TF32

// Attributes of an operation.
enum : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26 };
// Attributes of a preference.
enum : int { kRoomBytes = 1, kReductionMask = 3, kAlignmentA = 5, kAlignmentD = 8 };

// Attributes of an algorithm.
enum : int { kTile = 1, kCustomOption = 5, kClusterShape = 8 };

inline constexpr std::uint32_t kEpilogueBias = 4;
inline constexpr std::uint32_t kReduceInComputeType = 2;  // through the room
inline constexpr std::int32_t kTransposed = 1;

struct Library {
  Status (*create)(Handle*);
  std::size_t (*version)();
  Status (*operation_create)(Operation*, int compute, cudaDataType_t scale);
  Status (*operation_set)(Operation, int attribute, const void* value, std::size_t bytes);
  Status (*layout_create)(Layout*, cudaDataType_t, std::uint64_t rows, std::uint64_t columns,
                          std::int64_t stride);
  Status (*preference_create)(Preference*);
  Status (*preference_set)(Preference, int attribute, const void* value, std::size_t bytes);
  Status (*preference_destroy)(Preference);
  Status (*heuristic)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference,
                      int wanted, Heuristic* results, int* found);
  Status (*algorithm_get)(const Algorithm*, int attribute, void* value, std::size_t bytes,
                          std::size_t* written);
  Status (*multiply)(Handle, Operation, const void* alpha, const void* a, Layout, const void* b,
                     Layout, const void* beta, const void* c, Layout, void* d, Layout,
                     const Algorithm*, void* room, std::size_t room_bytes, cudaStream_t);
};

// Null where there is none; why, `absence` says then. Opened once for the process.
const Library* library();
const std::string& absence();

}  // namespace heddle::cuda::lt
