// The compilers' integer vectors that go with a vector of N floats. Spelled out, because GCC 12
// does not take a dependent size in the attribute.
#pragma once

#include <cstdint>

namespace heddle::cpu {

template <int N>
struct IntegerVectors;

template <>
struct IntegerVectors<4> {
  typedef std::int32_t Ints __attribute__((vector_size(16)));
  typedef std::uint32_t Bits __attribute__((vector_size(16)));
  typedef std::uint16_t Halves __attribute__((vector_size(8)));
};

template <>
struct IntegerVectors<8> {
  typedef std::int32_t Ints __attribute__((vector_size(32)));
  typedef std::uint32_t Bits __attribute__((vector_size(32)));
  typedef std::uint16_t Halves __attribute__((vector_size(16)));
};

template <>
struct IntegerVectors<16> {
  typedef std::int32_t Ints __attribute__((vector_size(64)));
  typedef std::uint32_t Bits __attribute__((vector_size(64)));
  typedef std::uint16_t Halves __attribute__((vector_size(32)));
};

}  // namespace heddle::cpu
