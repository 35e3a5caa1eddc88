// One element, many times.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace heddle::cuda {

// As Engine::fill() says.
void fill_elements(std::byte* at, std::int64_t count, const void* element, std::size_t width,
                   cudaStream_t stream);

}  // namespace heddle::cuda
