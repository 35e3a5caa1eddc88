#include "backend/cuda/fill.h"

#include <cstring>

#include "backend/cuda/kernel.cuh"

namespace heddle::cuda {

namespace {

template <class T>
void fill_with(std::byte* at, std::int64_t count, const void* element, cudaStream_t stream) {
  T value;
  std::memcpy(&value, element, sizeof value);
  T* const p = reinterpret_cast<T*>(at);
  each("fill", stream, count, [=] __device__(std::int64_t i) { p[i] = value; });
}

}  // namespace

void fill_elements(std::byte* at, std::int64_t count, const void* element, std::size_t width,
                   cudaStream_t stream) {
  switch (width) {
    case 1: return fill_with<std::uint8_t>(at, count, element, stream);
    case 2: return fill_with<std::uint16_t>(at, count, element, stream);
    case 4: return fill_with<std::uint32_t>(at, count, element, stream);
    default: return fill_with<std::uint64_t>(at, count, element, stream);
  }
}

}  // namespace heddle::cuda
