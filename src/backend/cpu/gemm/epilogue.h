// From a tile of sums to C: bias, pre-activation, activation, residual, accumulation, rounding.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend/cpu/gemm/activation.h"
#include "backend/cpu/gemm/layout.h"
#include "backend/cpu/gemm/vectors.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// `count` elements of a vector, all or fewer. The two cases are apart, because a copy of variable
// size is a loop of bytes or a call, and nearly all vectors are whole.
template <class Ops, class Vector, class T>
void load_elements(Vector& v, const T* p, std::int64_t count) noexcept {
  if (count >= Ops::kLanes) {
    std::memcpy(&v, p, sizeof v);
  } else {
    for (std::int64_t i = 0; i < count; ++i) v[i] = p[i];
  }
}
template <class Ops, class Vector, class T>
void store_elements(T* p, const Vector& v, std::int64_t count) noexcept {
  if (count >= Ops::kLanes) {
    std::memcpy(p, &v, sizeof v);
  } else {
    for (std::int64_t i = 0; i < count; ++i) p[i] = v[i];
  }
}

// Vectors of sums from and to memory of type T (float, double or bf16); `count` elements exist.
template <class Ops, class T>
struct SumMemory {
  using Vec = typename Ops::Vec;

  static Vec load(const T* p, std::int64_t count) noexcept {
    Vec v{};
    load_elements<Ops>(v, p, count);
    return v;
  }
  static void store(T* p, Vec v, std::int64_t count) noexcept { store_elements<Ops>(p, v, count); }
};

template <class Ops>
struct SumMemory<Ops, bf16> {
  using Vec = typename Ops::Vec;
  using Bits = typename IntegerVectors<Ops::kLanes>::Bits;
  using Halves = typename IntegerVectors<Ops::kLanes>::Halves;

  static Vec load(const bf16* p, std::int64_t count) noexcept {
    Halves h{};
    load_elements<Ops>(h, &p->bits, count);
    return reinterpret_cast<Vec>(__builtin_convertvector(h, Bits) << 16);
  }
  // Integer rounding, not vcvtneps2bf16: that one flushes denormals.
  static void store(bf16* p, Vec v, std::int64_t count) noexcept {
    const Bits u = reinterpret_cast<Bits>(v);
    const Bits rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const Bits nan = (u >> 16) | 0x40u;
    const Bits chosen = (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
    store_elements<Ops>(&p->bits, __builtin_convertvector(chosen, Halves), count);
  }
};

// The epilogue of one batch entry, with the pointers already moved to it.
template <class Ops, class C>
struct Finish {
  using L = Layout<Ops>;
  using Sum = typename Ops::Sum;
  using Vec = typename Ops::Vec;
  using InC = SumMemory<Ops, C>;
  using InSums = SumMemory<Ops, Sum>;

  C* c;
  std::int64_t c_stride;
  const Sum* bias;
  C* pre_activation;
  const C* residual;
  std::int64_t residual_stride;
  Activation activation;
  bool accumulate;

  explicit Finish(const GemmJob& job, std::int64_t batch) noexcept
      : c(static_cast<C*>(job.c) + batch * job.c_batch_stride),
        c_stride(job.c_row_stride),
        bias(static_cast<const Sum*>(job.epilogue.bias)),
        pre_activation(static_cast<C*>(job.epilogue.pre_activation)),
        residual(static_cast<const C*>(job.epilogue.residual)),
        residual_stride(job.epilogue.residual_stride),
        activation(job.epilogue.activation),
        accumulate(job.epilogue.accumulate) {
    if (pre_activation != nullptr) pre_activation += batch * job.c_batch_stride;
    if (residual != nullptr) residual += batch * job.c_batch_stride;
  }

  bool plain() const noexcept {
    return bias == nullptr && pre_activation == nullptr && residual == nullptr &&
           activation == Activation::none && !accumulate;
  }

  // Asks for the lines of C that tile() will write, early enough to hide their way from memory.
  void prefetch(std::int64_t row, std::int64_t rows, std::int64_t column,
                std::int64_t columns) const noexcept {
    constexpr auto kPerLine = static_cast<std::int64_t>(kLineBytes / sizeof(C));
    for (std::int64_t r = 0; r < rows; ++r) {
      const C* line = c + (row + r) * c_stride + column;
      for (std::int64_t i = 0; i < columns; i += kPerLine) __builtin_prefetch(line + i, 1);
    }
  }

  // `tile` holds rows of kColumns sums.
  void tile(const Sum* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
            std::int64_t columns) const noexcept {
    const bool simple = plain();
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < columns; i += L::kLanes) {
        const Sum* sums = tile + r * L::kColumns + i;
        if (simple) {
          InC::store(c + (row + r) * c_stride + column + i, InSums::load(sums, L::kLanes),
                     columns - i);
        } else {
          vector(InSums::load(sums, L::kLanes), row + r, column + i, columns - i);
        }
      }
    }
  }

  void vector(Vec v, std::int64_t row, std::int64_t column, std::int64_t count) const noexcept {
    const std::int64_t at = row * c_stride + column;
    if (bias != nullptr) v += InSums::load(bias + column, count);
    if (pre_activation != nullptr) InC::store(pre_activation + at, v, count);
    v = activate<Ops>(activation, v);
    if (residual != nullptr) v += InC::load(residual + row * residual_stride + column, count);
    if (accumulate) v += InC::load(c + at, count);
    InC::store(c + at, v, count);
  }
};

}  // namespace heddle::cpu
