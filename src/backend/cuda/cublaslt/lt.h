// cuBLASLt, where this machine has it: opened when a product first wants it, never linked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "backend/cuda/products/product.h"

namespace heddle::cuda {

// Memory that a product may use while it runs.
struct Room {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Room that the library is offered for an m × n product: by the shape, so that plans count it.
std::size_t lt_room(std::int64_t m, std::int64_t n);

enum class LtResult {
  done,
  without_bias,  // it ran, but left the bias to the caller
  not_taken,     // nothing was done: no library, or no such product in it
};

// One product (no batch) of bf16 operands by the library's first heuristic, with sums in f32; parts
// of a sum that it makes apart go through the room in f32, so that bits are the same every time.
// `device`: the index of the GPU that is current.
LtResult lt_multiply(const Product& p, const Room& room, int device, cudaStream_t stream);

// "13.1.0"; empty where there is none.
std::string lt_version();

}  // namespace heddle::cuda
