// Instructions of the GPU that C++ cannot express: copies into shared memory that overlap with the
// computation, tensor cores, and the unit for exponentials.
#pragma once

#include <cstdint>

namespace heddle::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

// Shared memory whose size the launch says.
__device__ inline char* launched_shared_memory() {
  extern __shared__ __align__(1024) char launched_memory[];
  return launched_memory;
}

__device__ inline std::uint32_t address_in_shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes to shared memory; zeros unless `there`. They arrive by the time that wait_for_copies()
// says so.
__device__ inline void copy_beside(std::uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the last kPending groups have arrived (this thread's: a barrier tells of the others').
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8×8 matrices whose rows begin at the addresses of lanes 0–7, 8–15, 16–23 and 24–31. Of each,
// a lane gets elements (lane / 4, 2 · (lane % 4)) and the one to its right; transposed, of the
// transposed matrix.
template <bool kTransposed>
__device__ inline void load_four(std::uint32_t (&r)[4], std::uint32_t address) {
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// c[16, 8] += a[16, 16] · b[16, 8] of bf16, spread over a warp. Of c a lane has elements (lane / 4,
// 2 · (lane % 4) + {0, 1}), and the same two eight rows below.
__device__ inline void tensor_product(float* c, const std::uint32_t (&a)[4], std::uint32_t b0,
                                      std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two numbers as bf16, the first one in the lower half.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// 2^x; 0 for minus infinity and below the smallest normal number. Relative error 2^-22.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Not inlined: they are long, and what calls them is unrolled.
__device__ __noinline__ inline double power_of_two(double x) { return ::exp2(x); }

// tanh = 1 - 2 / (exp(2x) + 1), its error no larger than that of a number near 1.
__device__ inline float hyperbolic_tangent(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;"
      : "=f"(inverse)
      : "f"(power_of_two(x * 2.885390081777927f) + 1.0f));
  return fmaf(-2.0f, inverse, 1.0f);
}
__device__ __noinline__ inline double hyperbolic_tangent(double x) { return ::tanh(x); }

// A product that is rounded before anything is added to it.
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

}  // namespace heddle::cuda
