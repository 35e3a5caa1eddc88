#include "backend/cpu/gemm/amx/epilogue.h"

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/rows.h"

#include "backend/cpu/gemm/activate.h"

namespace heddle::cpu::amx {
namespace {

template <class Type, Activation activation>
[[gnu::always_inline]] inline __m512 activated(__m512 x) noexcept {
  using Floats = Tag<float>;
  return activate<typename Type::Element>(Floats(), activation, amx::Vec<Floats>{x}).raw;
}

// Sums become results; returns the derivatives.
template <class Type, Activation activation>
[[gnu::always_inline]] inline __m512 differentiated(__m512& x) noexcept {
  using Floats = Tag<float>;
  const auto both =
      activate_with_derivative<typename Type::Element>(Floats(), activation, amx::Vec<Floats>{x});
  x = both.value.raw;
  return both.derivative.raw;
}

// Rows side by side: activations are long chains of dependent instructions, and only several of
// them at a time keep the vector units busy; without one, what is asked per group weighs.
template <Activation activation>
constexpr int kTogether = activation == Activation::none ? 4 : 2;

// `count` rows from r on, a multiple of count.
template <class Type, Activation activation, int count>
[[gnu::always_inline]] inline void epilogue_at(const EpilogueTask& task, Columns columns, Row bias,
                                               int r) noexcept {
  Row rows[count];
  const float* sums = sums_of_row(task.sums, r);
  for (int i = 0; i < count; ++i)
    rows[i] = {_mm512_load_ps(sums + 16 * i), _mm512_load_ps(sums + 16 * i + 256)};
  if (task.bias != nullptr)
    for (int i = 0; i < count; ++i) rows[i] = add(rows[i], bias);
  if (task.derivative != nullptr) {
    for (int i = 0; i < count; ++i) {
      const Row slopes{differentiated<Type, activation>(rows[i].low),
                       differentiated<Type, activation>(rows[i].high)};
      Type::store(task.derivative + (r + i) * task.c_row_bytes, columns, slopes);
    }
  } else {
    for (int i = 0; i < count; ++i)
      rows[i] = {activated<Type, activation>(rows[i].low),
                 activated<Type, activation>(rows[i].high)};
  }
  if (task.factor != nullptr)
    for (int i = 0; i < count; ++i)
      rows[i] = multiply(rows[i], Type::load(task.factor + (r + i) * task.c_row_bytes, columns));
  if (task.residual != nullptr)
    for (int i = 0; i < count; ++i)
      rows[i] =
          add(rows[i], Type::load(task.residual + (r + i) * task.residual_row_bytes, columns));
  char* c = task.c + r * task.c_row_bytes;
  if (task.stream) {
    for (int i = 0; i < count; ++i) Type::stream(c + i * task.c_row_bytes, rows[i]);
    return;
  }
  if (task.accumulate)
    for (int i = 0; i < count; ++i)
      rows[i] = add(rows[i], Type::load(c + i * task.c_row_bytes, columns));
  for (int i = 0; i < count; ++i) Type::store(c + i * task.c_row_bytes, columns, rows[i]);
}

// The common case, in as few instructions as possible: with a small K they weigh.
template <class Type>
[[gnu::always_inline]] inline void store_rows(const EpilogueTask& task, int begin,
                                              int end) noexcept {
  const std::int64_t row_bytes = task.c_row_bytes;
  char* c = task.c + begin * row_bytes;
  int r = begin;
  if (!task.stream && begin % 4 == 0) {
    for (; r + 4 <= end; r += 4, c += 4 * row_bytes) {
      const float* sums = sums_of_row(task.sums, r);
      Type::store(c, {_mm512_load_ps(sums), _mm512_load_ps(sums + 256)});
      Type::store(c + row_bytes, {_mm512_load_ps(sums + 16), _mm512_load_ps(sums + 272)});
      Type::store(c + 2 * row_bytes, {_mm512_load_ps(sums + 32), _mm512_load_ps(sums + 288)});
      Type::store(c + 3 * row_bytes, {_mm512_load_ps(sums + 48), _mm512_load_ps(sums + 304)});
    }
  }
  for (; r < end; ++r, c += row_bytes) {
    const float* sums = sums_of_row(task.sums, r);
    const Row row{_mm512_load_ps(sums), _mm512_load_ps(sums + 256)};
    task.stream ? Type::stream(c, row) : Type::store(c, row);
  }
}

template <class Type, Activation activation>
void epilogue_rows(const EpilogueTask& task, int begin, int end) noexcept {
  if constexpr (activation == Activation::none) {
    if (task.plain) return store_rows<Type>(task, begin, end);
  }
  const Columns columns(task.columns);
  Row bias{_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (task.bias != nullptr) bias = F32::load(reinterpret_cast<const char*>(task.bias), columns);
  constexpr int together = kTogether<activation>;
  int r = begin;
  for (; r % together != 0 && r < end; ++r)
    epilogue_at<Type, activation, 1>(task, columns, bias, r);
  for (; r + together <= end; r += together)
    epilogue_at<Type, activation, together>(task, columns, bias, r);
  for (; r < end; ++r) epilogue_at<Type, activation, 1>(task, columns, bias, r);
}

template <class Type>
EpilogueRows select(Activation activation) noexcept {
  switch (activation) {
    case Activation::relu: return epilogue_rows<Type, Activation::relu>;
    case Activation::gelu: return epilogue_rows<Type, Activation::gelu>;
    case Activation::gelu_tanh: return epilogue_rows<Type, Activation::gelu_tanh>;
    case Activation::silu: return epilogue_rows<Type, Activation::silu>;
    case Activation::none: break;
  }
  return epilogue_rows<Type, Activation::none>;
}

}  // namespace

EpilogueRows select_epilogue(DType c_dtype, Activation activation) noexcept {
  return c_dtype == DType::bf16 ? select<Bf16>(activation) : select<F32>(activation);
}

void finish_streaming() noexcept { _mm_sfence(); }

}  // namespace heddle::cpu::amx
