// Any x86-64: the compilers' own vectors of 16 bytes, which are SSE2 registers.
#include <cstdint>
#include <cstring>

#include "backend/cpu/gemm/block.h"
#include "backend/cpu/gemm/elements.h"
#include "backend/cpu/gemm/paths.h"

namespace heddle::cpu::generic {
namespace {

// 4 × 2 vectors of sums; with two of B and the broadcast, 11 of 16 registers.
template <class T>
struct Registers {
  typedef T Vec __attribute__((vector_size(16)));
  using Factor = Vec;
  static constexpr int kLanes = 16 / sizeof(T);
  static constexpr int kRows = 4;
  static constexpr int kVectors = 2;

  static Vec zero() { return Vec{}; }
  static Vec load(const T* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Vec load(const std::uint16_t* p) {  // bf16, in f32 registers
    typedef std::uint32_t Bits __attribute__((vector_size(16)));
    const Bits bits = Bits{p[0], p[1], p[2], p[3]} << 16;
    Vec v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  static Vec load_sums(const T* p) { return load(p); }
  static void store_sums(T* p, Vec v) { std::memcpy(p, &v, sizeof v); }
  static Vec broadcast(const T* p) { return Vec{} + *p; }
  static Vec add(Vec a, Vec b) { return a + b; }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return sum + a * b; }
};

struct F32 : F32Elements<F32>, Registers<float> {};
struct F32ByBf16 : F32ByBf16Elements<F32ByBf16>, Registers<float> {
  using Tiles = F32;
};
struct Bf16 : Bf16AsF32Elements<Bf16>, Registers<float> {
  using Tiles = F32;
};
struct F64 : F64Elements<F64>, Registers<double> {};

}  // namespace

constinit const Kernels f32_kernels = make_kernels<F32>();
constinit const Kernels f32_by_bf16_kernels = make_kernels<F32ByBf16>();
constinit const Kernels bf16_kernels = make_kernels<Bf16>();
constinit const Kernels f64_kernels = make_kernels<F64>();

}  // namespace heddle::cpu::generic
