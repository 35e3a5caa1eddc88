// Instructions of sm_90a: copies of whole boxes of a tensor that the memory unit makes by itself
// (TMA), barriers that count threads and bytes, and the order between them and ordinary stores. A
// file that uses them compiles its kernels' bodies under HEDDLE_SM90A alone: no other GPU, not even
// a later one, has these instructions.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backend/cuda/instructions.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HEDDLE_SM90A 1
#else
#define HEDDLE_SM90A 0
#endif

namespace heddle::cuda {

// ---- barriers in shared memory
// A barrier completes a phase when `arrivals` threads have arrived and all bytes that were
// announced are there; then the next phase begins. Who waits says the parity of the phase: 0 for
// the first.
using Barrier = std::uint64_t;

__device__ inline void init_barrier(Barrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_in_shared(b)),
               "r"(arrivals));
}
// After the last init_barrier() and before anybody else, or the memory unit, uses the barriers.
__device__ inline void barriers_are_made() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void arrive(Barrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_in_shared(b)) : "memory");
}
// Arrives, and announces bytes that copies will bring.
__device__ inline void arrive_expecting(Barrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_in_shared(b)),
               "r"(bytes)
               : "memory");
}
__device__ inline void wait_for(Barrier* b, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nL_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra L_%=;\n}\n" ::"r"(address_in_shared(b)),
      "r"(parity)
      : "memory");
}

// Barriers by number, of any share of a block's threads: `threads` in all, of which some only say
// that they were there.
__device__ inline void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ inline void pass_by(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- copies by the memory unit
// A box of a tensor of four dimensions, from these coordinates on (innermost first). What lies
// outside of the tensor arrives as zeros and is not written.
__device__ inline void load_box(void* to, const CUtensorMap& map, Barrier* b, int column, int row,
                                int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5, %6}], [%2];" ::"r"(address_in_shared(to)),
      "l"(&map), "r"(address_in_shared(b)), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
__device__ inline void store_box(const CUtensorMap& map, const void* from, int column, int row,
                                 int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
          &map),
      "r"(address_in_shared(from)), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
// Neighbouring bytes, a multiple of 16.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(address_in_shared(to)),
      "l"(from), "r"(bytes), "r"(address_in_shared(b))
      : "memory");
}
__device__ inline void store_floats(float* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(address_in_shared(from)), "r"(bytes)
               : "memory");
}
// to += from, each number by itself.
__device__ inline void add_floats(float* to, const void* from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(address_in_shared(from)), "r"(bytes)
      : "memory");
}
__device__ inline void end_of_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_until_stores_were_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void wait_until_stores_are_there() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// ---- order
// Ordinary stores to shared memory come before what the memory unit and tensor cores read: by every
// thread that stored, before a barrier.
__device__ inline void stores_come_first() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// The same between ordinary accesses and the memory unit's in the GPU's memory.
__device__ inline void copies_keep_order() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
__device__ inline int read_before_the_rest(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void write_after_the_rest(int* p, int v) {
  asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// ---- registers
// Warpgroups share what the launch allocated, threads times registers: a sum that is larger waits
// for ever.
template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- halves of what bf16_pair() made
__device__ inline float lower_half(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float upper_half(std::uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}

// ---- stores of results
// Four 8×8 matrices from registers, as load_four() has them.
__device__ inline void store_four(std::uint32_t address, std::uint32_t a, std::uint32_t b,
                                  std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace heddle::cuda
