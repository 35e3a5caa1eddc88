// ARM64 with bfdot: products of pairs of bf16, summed in f32. As the instruction has it, denormal
// operands count as zero, and the sum of a pair is rounded to odd before it is added.
#include <arm_neon.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"

namespace heddle::cpu::neon_bf16 {
namespace {

// 8 × 3 vectors of sums, as those of f32 (neon.cpp). A lane takes a pair of bf16.
struct PairRegisters {
  using Vec = float32x4_t;
  using Factor = bfloat16x8_t;
  using Lane = float;  // the bits of a pair
  static constexpr int kLanes = 4;
  static constexpr int kRows = 8;
  static constexpr int kVectors = 3;

  static Vec zero() { return vdupq_n_f32(0); }
  static Factor load(const std::uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); }
  static Vec load_sums(const float* p) { return vld1q_f32(p); }
  static void store_sums(float* p, Vec v) { vst1q_f32(p, v); }
  static Lane broadcast(const std::uint16_t* p) {
    float pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return pair;
  }
  static Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
  // vbfdotq_lane_f32(), whose operand GCC 12 fills with copies of the pair first: an instruction
  // for three products, on the units that multiply.
  static Vec multiply_add(Lane a, Factor b, Vec sum) {
    asm("bfdot %0.4s, %1.8h, %2.2h[0]" : "+w"(sum) : "w"(b), "w"(a));
    return sum;
  }
};

struct Bf16 : Bf16PairElements<Bf16>, PairRegisters {};

}  // namespace

constinit const Kernels bf16_kernels = make_kernels<Bf16>();

}  // namespace heddle::cpu::neon_bf16
