// From a tile of sums to C: bias, activation and its derivative, factor, residual, accumulation,
// rounding.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cpu/gemm/activate.h"
#include "backend/cpu/gemm/layout.h"
#include "backend/cpu/gemm/micro.h"

namespace heddle::cpu {

// The epilogue of one batch entry, with the pointers already moved to it.
template <class Ops, class C>
struct Finish {
  using L = Layout<Ops>;
  using Sum = typename Ops::Sum;
  using D = HEDDLE_ISA::Tag<Sum>;
  using Vec = HEDDLE_ISA::Vec<D>;

  C* c;
  std::int64_t c_stride;
  const Sum* bias;
  C* derivative;
  const C* factor;
  const C* residual;
  std::int64_t residual_stride;
  Activation activation;
  bool accumulate;

  explicit Finish(const GemmJob& job, std::int64_t batch) noexcept
      : c(static_cast<C*>(job.c) + batch * job.c_batch_stride),
        c_stride(job.c_row_stride),
        bias(static_cast<const Sum*>(job.epilogue.bias)),
        derivative(static_cast<C*>(job.epilogue.derivative)),
        factor(static_cast<const C*>(job.epilogue.factor)),
        residual(static_cast<const C*>(job.epilogue.residual)),
        residual_stride(job.epilogue.residual_stride),
        activation(job.epilogue.activation),
        accumulate(job.epilogue.accumulate) {
    if (derivative != nullptr) derivative += batch * job.c_batch_stride;
    if (factor != nullptr) factor += batch * job.c_batch_stride;
    if (residual != nullptr) residual += batch * job.c_batch_stride;
  }

  bool plain() const noexcept {
    return bias == nullptr && derivative == nullptr && factor == nullptr && residual == nullptr &&
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

  static constexpr bool kRounds = std::is_same_v<C, bf16> && kStoresBf16<Ops>;

  // Can a kernel write its sums to C itself? Whole vectors only.
  bool takes_sums(std::int64_t columns) const noexcept {
    return (std::is_same_v<C, Sum> || kRounds) && columns % L::kLanes == 0 && plain();
  }
  void aim(TileJob<Ops>& job, std::int64_t row, std::int64_t column) const noexcept {
    C* const at = c + row * c_stride + column;
    job.to_step = c_stride;
    if constexpr (std::is_same_v<C, Sum>) job.to = at;
    if constexpr (kRounds) job.rounded_to = at;
  }

  // `tile` holds rows of kColumns sums.
  void tile(const Sum* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
            std::int64_t columns) const noexcept {
    const D d;
    const auto each = [&](auto use) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t i = 0; i < columns; i += HEDDLE_ISA::lanes(d))
          use(HEDDLE_ISA::load(d, tile + r * L::kColumns + i), row + r, column + i, columns - i);
    };
    if (plain())
      return each([this](Vec v, std::int64_t r, std::int64_t i, std::int64_t count) {
        store(c + r * c_stride + i, v, count);
      });
    // Asked once, not for every vector.
    with_activation([&](auto chosen) {
      each([&](Vec v, std::int64_t r, std::int64_t i, std::int64_t count) {
        vector<decltype(chosen)::value>(v, r, i, count);
      });
    });
  }

 private:
  template <class Use>
  void with_activation(Use use) const noexcept {
    using enum Activation;
    switch (activation) {
      case none: return use(std::integral_constant<Activation, none>());
      case relu: return use(std::integral_constant<Activation, relu>());
      case gelu: return use(std::integral_constant<Activation, gelu>());
      case gelu_tanh: return use(std::integral_constant<Activation, gelu_tanh>());
      case silu: return use(std::integral_constant<Activation, silu>());
    }
  }

  template <Activation kActivation>
  HWY_INLINE void vector(Vec v, std::int64_t row, std::int64_t column,
                         std::int64_t count) const noexcept {
    const D d;
    const std::int64_t at = row * c_stride + column;
    if (bias != nullptr) v = HEDDLE_ISA::hn::Add(v, load(bias + column, count));
    if (derivative != nullptr) {
      const auto both = HEDDLE_ISA::activate_with_derivative<C>(d, kActivation, v);
      store(derivative + at, both.derivative, count);
      v = both.value;
    } else {
      v = HEDDLE_ISA::activate<C>(d, kActivation, v);
    }
    if (factor != nullptr) v = HEDDLE_ISA::hn::Mul(v, load(factor + at, count));
    if (residual != nullptr)
      v = HEDDLE_ISA::hn::Add(v, load(residual + row * residual_stride + column, count));
    if (accumulate) v = HEDDLE_ISA::hn::Add(v, load(c + at, count));
    store(c + at, v, count);
  }

  // A vector of which `count` elements exist in memory, all or fewer.
  template <class T>
  static Vec load(const T* p, std::int64_t count) noexcept {
    const D d;
    return count >= HEDDLE_ISA::lanes(d) ? HEDDLE_ISA::load(d, p) : HEDDLE_ISA::load_n(d, p, count);
  }
  static void store(C* p, Vec v, std::int64_t count) noexcept {
    const D d;
    count >= HEDDLE_ISA::lanes(d) ? HEDDLE_ISA::store(d, v, p)
                                  : HEDDLE_ISA::store_n(d, v, p, count);
  }
};

}  // namespace heddle::cpu
