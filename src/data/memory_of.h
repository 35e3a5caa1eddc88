// How much memory what a dataset keeps takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::data {

// Without what its elements hold themselves.
template <class T>
std::int64_t memory_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.capacity() * sizeof(T));
}

// Bytes that a string holds on the heap.
inline std::int64_t memory_of(const std::string& text) {
  return text.capacity() > std::string().capacity() ? static_cast<std::int64_t>(text.capacity()) + 1
                                                    : 0;
}

}  // namespace heddle::data
