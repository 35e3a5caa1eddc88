// Products with what linear layers do to their sums on the way to memory.
#pragma once

#include "backend/cuda/cublaslt/lt.h"
#include "backend/cuda/products/product.h"
#include "heddle/activation.h"

namespace heddle::cuda {

//   sum -> + bias[n] -> activation -> + residual
// bias and residual are in the product. Null terms are left out; all have y's layout.
struct Finish {
  Activation activation = Activation::none;
  void* before = nullptr;  // written: the sum, from which the backward pass makes the slope

  bool nothing() const { return activation == Activation::none; }
};

// The facts that decide the workspace of such a product: its plan has shapes but no addresses.
struct LayerShape {
  DType operand = DType::f32, result = DType::f32;
  std::int64_t m = 0, n = 0;
  bool finishes_residual = false;  // there is a residual, and an activation before it
};

// Bytes of room for it: what the library may use, and y once more for a residual that is y itself
// and must not be overwritten before the end.
std::size_t layer_room(const LayerShape& shape);

// bf16 operands: by cuBLASLt if it is there, else by Heddle's own product. A step that the product
// itself cannot do is a separate pass over y, at the speed of memory: cuBLASLt's epilogues with
// activations are slower than that.
void multiply_layer(const Product& p, const Finish& f, const Room& room, int device,
                    cudaStream_t stream);

}  // namespace heddle::cuda
