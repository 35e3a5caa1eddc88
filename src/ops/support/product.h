// Matrix products for ops: the GEMM of the CPU backend, and weights kept in its packed form.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "heddle/tensor.h"

namespace heddle::cpu {

// gemm_path(current_isa(), operand) as a table, so that tests can plant faults in it as in any
// other table of kernels.
struct ProductKernels {
  std::size_t (*packed_bytes)(DType operand, std::int64_t k, std::int64_t n);
  void (*pack_b)(DType operand, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst);
  void (*run)(DType operand, const GemmJob& job);
  void (*run_all)(DType operand, std::span<const GemmJob> jobs, const Beside* beside);
};

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa isa);

}  // namespace heddle::cpu

namespace heddle {
class Storage;
}

namespace heddle::ops {

struct PackedEntry;

// The last two dimensions of x, as they lie in memory.
cpu::MatrixRef matrix_of(const Tensor& x);

// Room for `count` packed [k, n] matrices, booked as workspace.
Tensor packed_workspace(DType operand, std::int64_t k, std::int64_t n, const Tensor& like,
                        std::int64_t count = 1);

// c = aᵀ · b, or c += aᵀ · b: the gradient of a weight from rows of its results and inputs.
// a: [rows, N], b: [rows, K], c: [N, K]; `packed` has room for b, packed in its own type.
void transposed_product(const Tensor& a, const Tensor& b, Tensor& packed, Tensor& c, bool add);
// What computes c = aᵀ · b; the four tensors must live until it has run.
cpu::GemmJob transposed_job(const Tensor& a, const Tensor& b, Tensor& packed, Tensor& c);

// b, a weight [K, N] in any layout (usually a transposed view), packed for products with operands
// of type `operand`. It is packed once for each version of b's storage and lives as long as that
// storage; a new version is packed into the same memory. One entry is kept for each view, operand
// type and instruction set.
//
// The bytes are booked as workspace, not as parameters: they are a cost of the engine, and the
// bytes of the parameters stay what a reader computes from their number. On the meta device the
// same bytes are booked.
//
// A weight must not be changed while another thread uses it; lookups themselves may run on several
// threads.
Tensor packed_weight(const Tensor& b, DType operand);

// Small weights that are about to change, such as those of an optimiser's step: what was used of
// their packed forms is packed again as soon as the new values are there, by the thread that has
// them in its cache, instead of one after the other at their next use. A large one is better packed
// then, when a product reads it while it is still in the caches. On the meta device nothing is
// done, and the cost is booked at the next use.
//
// No weight is looked up by packed_weight() while one of these lives.
class PackedRefresh {
 public:
  explicit PackedRefresh(std::span<const Tensor> weights);

  // Weight i has its new values. Once for each, on any thread; those of one thread run serially
  // inside of a parallel section.
  void pack(std::size_t i) noexcept;
  // All of them have: one piece of work.
  void pack_all() noexcept;

 private:
  struct Stale {
    PackedEntry* entry = nullptr;
    cpu::MatrixRef matrix;  // what it is to be filled from
    Storage* storage = nullptr;
  };
  void find(const Tensor& weight);

  std::unique_lock<std::mutex> lock_;
  std::vector<Stale> stale_;
  std::vector<std::size_t> first_;  // of each weight among the stale, and the end
};

}  // namespace heddle::ops
