// AVX-512 (F, BW, DQ, VL, CD).
#include <immintrin.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"
#include "backend/cpu/gemm/transpose16.h"

namespace heddle::cpu::avx512 {
namespace {

// 8 × 3 vectors of sums, three of B and a few broadcasts on their way: 32 registers hold them. 11
// loads for 24 multiply-adds, where 12 × 2 vectors take 14.
struct FloatRegisters {
  using Vec = __m512;
  using Factor = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 8;
  static constexpr int kVectors = 3;
  static constexpr bool kAsksAhead = true;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  // Forms with masks as in transpose16.h.
  static Vec load(const std::uint16_t* p) {
    const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, narrow);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, wide, 16));
  }
  static Vec load_sums(const float* p) { return _mm512_loadu_ps(p); }
  static void store_sums(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static Vec broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm512_fmadd_ps(a, b, sum); }
};

// Panels of 24 columns would pack slower than the products gain.
struct DoubleRegisters {
  using Vec = __m512d;
  using Factor = __m512d;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 12;
  static constexpr int kVectors = 2;

  static Vec zero() { return _mm512_setzero_pd(); }
  static Vec load(const double* p) { return _mm512_loadu_pd(p); }
  static Vec load_sums(const double* p) { return _mm512_loadu_pd(p); }
  static void store_sums(double* p, Vec v) { _mm512_storeu_pd(p, v); }
  static Vec broadcast(const double* p) { return _mm512_set1_pd(*p); }
  static Vec add(Vec a, Vec b) { return _mm512_add_pd(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm512_fmadd_pd(a, b, sum); }
};

struct F32 : F32Elements<F32>, FloatRegisters {
  static constexpr auto transpose = transpose16<F32>;
};
struct F32ByBf16 : F32ByBf16Elements<F32ByBf16>, FloatRegisters {
  using Tiles = F32;
  static constexpr auto transpose = transpose16<F32ByBf16>;
};
struct Bf16 : Bf16AsF32Elements<Bf16>, FloatRegisters {
  using Tiles = F32;
  static constexpr auto transpose = transpose16<Bf16>;
};
struct F64 : F64Elements<F64>, DoubleRegisters {
  static constexpr auto transpose = transpose_by_scalars<F64>;
};

}  // namespace

constinit const Kernels f32_kernels = make_kernels<F32>();
constinit const Kernels f32_by_bf16_kernels = make_kernels<F32ByBf16>();
constinit const Kernels bf16_kernels = make_kernels<Bf16>();
constinit const Kernels f64_kernels = make_kernels<F64>();

}  // namespace heddle::cpu::avx512
