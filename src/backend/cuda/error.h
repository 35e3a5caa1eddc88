// Errors of CUDA as Errors of Heddle: HEDDLE_CUDA_CHECK(cudaMalloc(...)).
#pragma once

#include <cuda_runtime_api.h>

namespace heddle::cuda {

// `call` as it was written; its name is shown to people.
void check(cudaError_t result, const char* call);

// After a launch, which itself returns nothing.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace heddle::cuda

#define HEDDLE_CUDA_CHECK(call) ::heddle::cuda::check((call), #call)
