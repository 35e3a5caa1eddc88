// AVX-512 with vdpbf16ps: products of pairs of bf16, summed in f32. Denormal operands count as
// zero, as the instruction has it.
#include <immintrin.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"
#include "backend/cpu/gemm/transpose16.h"

namespace heddle::cpu::avx512_bf16 {
namespace {

// 12 × 2 vectors of sums. A lane takes a pair of bf16, and two vectors of sums are stored as one of
// bf16.
struct PairRegisters {
  using Vec = __m512;
  using Factor = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 12;
  static constexpr int kVectors = 2;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Factor load(const std::uint16_t* p) { return _mm512_loadu_si512(p); }
  static Vec load_sums(const float* p) { return _mm512_loadu_ps(p); }
  static void store_sums(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static Factor broadcast(const std::uint16_t* p) {
    std::int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  // Pairs of up to 16 elements each, the first ones in the lower halves; zeros after them. Forms
  // with masks as in transpose16.h.
  static void interleave16(const bf16* first, const bf16* second, std::int64_t count,
                           std::uint16_t* to) {
    const auto there = static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1);
    const __m512i high = _mm512_maskz_slli_epi32(0xffff, wide(second, there), 16);
    _mm512_storeu_si512(to, _mm512_or_si512(wide(first, there), high));
  }
  static __m512i wide(const bf16* p, __mmask16 there) {
    return _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(there, p));
  }

  // Rounded to nearest even; numbers below 2^-126 become zero.
  static void store_bf16(bf16* p, Vec v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  }
  static void store_bf16(bf16* p, Vec low, Vec high) {
    _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec multiply_add(Factor a, Factor b, Vec sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

struct Bf16 : Bf16PairElements<Bf16>, PairRegisters {
  static constexpr auto transpose = transpose16<Bf16>;
};

}  // namespace

constinit const Kernels bf16_kernels = make_kernels<Bf16>();

}  // namespace heddle::cpu::avx512_bf16
