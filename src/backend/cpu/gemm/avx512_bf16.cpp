// AVX-512 with vdpbf16ps: products of pairs of bf16, summed in f32. Denormal operands count as
// zero, as the instruction has it.
#include <immintrin.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"
#include "backend/cpu/gemm/transpose16.h"

namespace heddle::cpu::avx512_bf16 {
namespace {

// The same tile as in f32: a lane takes a pair of bf16 instead of one f32.
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
