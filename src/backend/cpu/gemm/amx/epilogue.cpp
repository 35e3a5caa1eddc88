#include "backend/cpu/gemm/amx/epilogue.h"

#include "backend/cpu/gemm/amx/intrinsics.h"

#include "backend/cpu/gemm/amx/vector_math.h"

namespace heddle::cpu::amx {
namespace {

// A row of 32 columns.
struct Row {
  __m512 low, high;
};

[[gnu::always_inline]] inline Row add(Row a, Row b) noexcept {
  return {_mm512_add_ps(a.low, b.low), _mm512_add_ps(a.high, b.high)};
}

struct Columns {
  __mmask16 low, high;
  explicit Columns(std::uint32_t mask) noexcept
      : low(static_cast<__mmask16>(mask)), high(static_cast<__mmask16>(mask >> 16)) {}
  __mmask32 all() const noexcept {
    return static_cast<__mmask32>(low) | static_cast<__mmask32>(high) << 16;
  }
};

struct F32 {
  [[gnu::always_inline]] static Row load(const char* p, Columns columns) noexcept {
    const float* f = reinterpret_cast<const float*>(p);
    return {_mm512_maskz_loadu_ps(columns.low, f), _mm512_maskz_loadu_ps(columns.high, f + 16)};
  }
  [[gnu::always_inline]] static void store(char* p, Columns columns, Row row) noexcept {
    float* f = reinterpret_cast<float*>(p);
    _mm512_mask_storeu_ps(f, columns.low, row.low);
    _mm512_mask_storeu_ps(f + 16, columns.high, row.high);
  }
  [[gnu::always_inline]] static void stream(char* p, Row row) noexcept {
    float* f = reinterpret_cast<float*>(p);
    _mm512_stream_ps(f, row.low);
    _mm512_stream_ps(f + 16, row.high);
  }
};

struct Bf16 {
  [[gnu::always_inline]] static __m512 widen(__m256i half) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  [[gnu::always_inline]] static __m512i narrow(Row row) noexcept {
    const __m512bh both = _mm512_cvtne2ps_pbh(row.high, row.low);
    __m512i bits;
    __builtin_memcpy(&bits, &both, 64);
    return bits;
  }
  [[gnu::always_inline]] static Row load(const char* p, Columns columns) noexcept {
    const __m512i bits = _mm512_maskz_loadu_epi16(columns.all(), p);
    return {widen(_mm512_castsi512_si256(bits)), widen(_mm512_extracti64x4_epi64(bits, 1))};
  }
  [[gnu::always_inline]] static void store(char* p, Columns columns, Row row) noexcept {
    _mm512_mask_storeu_epi16(p, columns.all(), narrow(row));
  }
  [[gnu::always_inline]] static void stream(char* p, Row row) noexcept {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), narrow(row));
  }
};

template <Activation activation>
[[gnu::always_inline]] inline __m512 activate(__m512 x) noexcept {
  if constexpr (activation == Activation::relu) return relu_ps(x);
  if constexpr (activation == Activation::gelu) return gelu_ps(x);
  if constexpr (activation == Activation::gelu_tanh) return gelu_tanh_ps(x);
  if constexpr (activation == Activation::silu) return silu_ps(x);
  return x;
}

template <class Type, Activation activation>
void epilogue_rows(const EpilogueTask& task, int begin, int end) noexcept {
  const Columns columns(task.columns);
  Row bias{_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (task.bias != nullptr) bias = F32::load(reinterpret_cast<const char*>(task.bias), columns);
  for (std::int64_t r = begin; r < end; ++r) {
    Row row{_mm512_load_ps(task.sums + r * 32), _mm512_load_ps(task.sums + r * 32 + 16)};
    if (task.bias != nullptr) row = add(row, bias);
    if (task.pre_activation != nullptr)
      Type::store(task.pre_activation + r * task.c_row_bytes, columns, row);
    row = {activate<activation>(row.low), activate<activation>(row.high)};
    if (task.residual != nullptr)
      row = add(row, Type::load(task.residual + r * task.residual_row_bytes, columns));
    char* c = task.c + r * task.c_row_bytes;
    if (task.stream) {
      Type::stream(c, row);
    } else {
      if (task.accumulate) row = add(row, Type::load(c, columns));
      Type::store(c, columns, row);
    }
  }
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
