// Weights in the type that products read, kept along with the originals.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::cuda {

// b, a weight [K, N] in any layout, as products with operands of type `operand` read it: b itself,
// or a copy in that type. The copy is made once for each version of b's storage and lives as long
// as that storage; a new version goes into the same memory. Both ways to look at a weight, as it is
// and transposed, share one copy.
//
// The bytes are booked as workspace, as the CPU's packed weights are: a cost of the engine. On the
// meta device the same bytes are booked.
Tensor prepared_weight(const Tensor& b, DType operand);

// A copy in bf16 of a whole f32 weight that is up to date, for an optimiser that is about to change
// the weight and writes both. Its lifetime is that of the weight's storage.
class FollowingCopy {
 public:
  explicit FollowingCopy(const Tensor& weight);

  bf16* data() const { return data_; }  // on the device; null: not used, or stale

  // Weight and copy have new values that agree; the weight's version has been counted up.
  void written() const;

 private:
  Tensor weight_;
  bf16* data_ = nullptr;
};

}  // namespace heddle::cuda
