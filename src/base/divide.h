// Whole numbers that are divided and rounded up. Inlined always: kernels use it too, and a copy out
// of line would be one for all instruction sets.
#pragma once

#include <type_traits>

namespace heddle {

// How many pieces of `size` hold `count`: count / size, rounded up. Neither is negative.
template <class T>
[[gnu::always_inline]] constexpr T ceil_div(T count, std::type_identity_t<T> size) noexcept {
  return (count + size - 1) / size;
}

// The multiple of `size` that is not below `count`.
template <class T>
[[gnu::always_inline]] constexpr T round_up(T count, std::type_identity_t<T> size) noexcept {
  return ceil_div(count, size) * size;
}

}  // namespace heddle
