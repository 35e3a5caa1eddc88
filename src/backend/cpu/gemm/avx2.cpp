// AVX2 and FMA.
#include <immintrin.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"

namespace heddle::cpu::avx2 {
namespace {

// 6 × 2 vectors of sums, two of B and one broadcast: 15 of 16 registers.
struct FloatRegisters {
  using Vec = __m256;
  using Factor = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 6;
  static constexpr int kVectors = 2;

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static Vec load(const std::uint16_t* p) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static Vec load_sums(const float* p) { return _mm256_loadu_ps(p); }
  static void store_sums(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  static Vec broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm256_fmadd_ps(a, b, sum); }
};

struct DoubleRegisters {
  using Vec = __m256d;
  using Factor = __m256d;
  static constexpr int kLanes = 4;
  static constexpr int kRows = 6;
  static constexpr int kVectors = 2;

  static Vec zero() { return _mm256_setzero_pd(); }
  static Vec load(const double* p) { return _mm256_loadu_pd(p); }
  static Vec load_sums(const double* p) { return _mm256_loadu_pd(p); }
  static void store_sums(double* p, Vec v) { _mm256_storeu_pd(p, v); }
  static Vec broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  static Vec add(Vec a, Vec b) { return _mm256_add_pd(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm256_fmadd_pd(a, b, sum); }
};

struct F32 : F32Elements<F32>, FloatRegisters {
  static constexpr auto transpose = transpose_by_scalars<F32>;
};
struct F32ByBf16 : F32ByBf16Elements<F32ByBf16>, FloatRegisters {
  using Tiles = F32;
  static constexpr auto transpose = transpose_by_scalars<F32ByBf16>;
};
struct Bf16 : Bf16AsF32Elements<Bf16>, FloatRegisters {
  using Tiles = F32;
  static constexpr auto transpose = transpose_by_scalars<Bf16>;
};
struct F64 : F64Elements<F64>, DoubleRegisters {
  static constexpr auto transpose = transpose_by_scalars<F64>;
};

}  // namespace

constinit const Kernels f32_kernels = make_kernels<F32>();
constinit const Kernels f32_by_bf16_kernels = make_kernels<F32ByBf16>();
constinit const Kernels bf16_kernels = make_kernels<Bf16>();
constinit const Kernels f64_kernels = make_kernels<F64>();

}  // namespace heddle::cpu::avx2
