// ARM64: vectors of 16 bytes and fused multiply-adds, which every processor has.
#include <arm_neon.h>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"

namespace heddle::cpu::neon {
namespace {

// 8 × 3 vectors of sums, three of B, and units of A on their way: 32 registers hold them. A
// multiply-add takes a lane, so that A is loaded as a number: to fill a register with copies of it
// would take a slot of the units that multiply.
struct FloatRegisters {
  using Vec = float32x4_t;
  using Factor = float32x4_t;
  using Lane = float;
  static constexpr int kLanes = 4;
  static constexpr int kRows = 8;
  static constexpr int kVectors = 3;

  static Vec zero() { return vdupq_n_f32(0); }
  static Vec load(const float* p) { return vld1q_f32(p); }
  static Vec load(const std::uint16_t* p) {  // bf16
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
  }
  static Vec load_sums(const float* p) { return vld1q_f32(p); }
  static void store_sums(float* p, Vec v) { vst1q_f32(p, v); }
  static Lane broadcast(const float* p) { return *p; }
  static Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
  static Vec multiply_add(Lane a, Vec b, Vec sum) { return vfmaq_n_f32(sum, b, a); }
};

struct DoubleRegisters {
  using Vec = float64x2_t;
  using Factor = float64x2_t;
  using Lane = double;
  static constexpr int kLanes = 2;
  static constexpr int kRows = 8;
  static constexpr int kVectors = 3;

  static Vec zero() { return vdupq_n_f64(0); }
  static Vec load(const double* p) { return vld1q_f64(p); }
  static Vec load_sums(const double* p) { return vld1q_f64(p); }
  static void store_sums(double* p, Vec v) { vst1q_f64(p, v); }
  static Lane broadcast(const double* p) { return *p; }
  static Vec add(Vec a, Vec b) { return vaddq_f64(a, b); }
  static Vec multiply_add(Lane a, Vec b, Vec sum) { return vfmaq_n_f64(sum, b, a); }
};

struct F32 : F32Elements<F32>, FloatRegisters {};
struct F32ByBf16 : F32ByBf16Elements<F32ByBf16>, FloatRegisters {
  using Tiles = F32;
};
struct Bf16 : Bf16AsF32Elements<Bf16>, FloatRegisters {
  using Tiles = F32;
};
struct F64 : F64Elements<F64>, DoubleRegisters {};

}  // namespace

constinit const Kernels f32_kernels = make_kernels<F32>();
constinit const Kernels f32_by_bf16_kernels = make_kernels<F32ByBf16>();
constinit const Kernels bf16_kernels = make_kernels<Bf16>();
constinit const Kernels f64_kernels = make_kernels<F64>();

}  // namespace heddle::cpu::neon
