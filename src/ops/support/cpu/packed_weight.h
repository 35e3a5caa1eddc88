// Weights in the form that the CPU's matrix kernels read, kept along with the originals.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/operands.h"
#include "heddle/tensor.h"

namespace heddle {
class OtherForm;
class Storage;
}  // namespace heddle

namespace heddle::cpu {

struct PackedEntry;

// b, a weight [K, N] in any layout (usually a transposed view), packed for products of these
// operands. It is packed once for each version of b's storage and lives as long as that
// storage; a new version is packed into the same memory. One entry is kept for each view, operand
// type and instruction set.
//
// The bytes are booked as workspace, not as parameters: they are a cost of the engine, and the
// bytes of the parameters stay what a reader computes from their number. On the meta device the
// same bytes are booked.
//
// A weight that nobody is going to change (Storage::constant()) is held packed alone: where that
// loses nothing, and where b is all of a row-major weight [N, K], the weight's own bytes are given
// back. Who asks for them makes them again from the packed ones, except for embedding(), which
// takes the rows that it needs (packed_rows()).
//
// A weight must not be changed while another thread uses it; lookups themselves may run on several
// threads.
Tensor packed_weight(const Tensor& b, Operands operands);

// Rows of a weight [N, K] that is held packed alone.
struct PackedRows {
  const OtherForm* form = nullptr;  // null: the weight's own bytes are here

  // Those with these numbers, i32 or i64 and all below N, to [count, K] in the weight's type.
  void copy(const Tensor& ids, Tensor& rows) const;
};
PackedRows packed_rows(const Tensor& weight);

// Small weights that are about to change, such as those of an optimiser's step: those of their
// packed forms that were used are packed again as soon as the new values are there, by the thread
// that has them in its cache, instead of one after another at their next use. A large one is better
// packed then, when a product reads it while it is still in the caches. On the meta device nothing
// is done, and the cost is booked at the next use.
//
// No weight is looked up by packed_weight() while one of these lives.
class PackedRefresh {
 public:
  explicit PackedRefresh(std::span<const Tensor> weights);

  // Weight i has its new values. Once for each, on any thread; those of one thread run serially
  // inside of a parallel section.
  void pack(std::size_t i) noexcept;

 private:
  struct Stale {
    PackedEntry* entry = nullptr;
    MatrixRef matrix;  // the source to pack
    Storage* storage = nullptr;
  };
  void find(const Tensor& weight);

  std::unique_lock<std::mutex> lock_;
  std::vector<Stale> stale_;
  std::vector<std::size_t> first_;  // of each weight among the stale, and the end
};

}  // namespace heddle::cpu
