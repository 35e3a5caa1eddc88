// Which places name which row: what sums over equal indices need to add in one order, without
// atomics on floating-point numbers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cuda {

// Words of 32 bits of room that row_order() wants for `count` indices. Throws Error above 2^31.
std::int64_t row_order_words(std::int64_t count);

// After it, order[starts[r]] to order[starts[r + 1] - 1] are the places i with ids[i] = r,
// ascending; order is a part of the room. starts has rows + 1 words.
const std::int32_t* row_order(const void* ids, DType dtype, std::int64_t count, std::int64_t rows,
                              std::int32_t* room, std::int32_t* starts, cudaStream_t stream);

}  // namespace heddle::cuda
