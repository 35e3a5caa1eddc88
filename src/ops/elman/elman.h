// The scan of an Elman network (Elman 1990) over whole sequences.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// Optional arguments of a scan, besides pre and the recurrent weight.
struct ElmanOptions {
  Tensor h0 = {};       // [B, H], pre's type; undefined: zeros
  Tensor lengths = {};  // [B] i32 or i64, 0..T, on pre's device or the CPU; undefined: all T
  bool reverse = false;
};

struct ElmanResult {
  Tensor y;     // [B, T, H]: the state after each step, 0 from a sequence's length on
  Tensor last;  // [B, H]: the state after a sequence's last step; h0 where it has none
};

//   h_t = tanh(pre_t + U h_{t-1}),  t = 0 .. length - 1
// in reverse h_t = tanh(pre_t + U h_{t+1}), t = length - 1 .. 0: the scan begins at the sequence's
// own last token. h before the first step is h0.
//
// pre: [B, T, H] in f32, bf16, f16 or f64, usually x Wᵀ + b made by linear() for all steps at once.
// recurrent: U [H, H], f32 when pre is f32 or bf16, f64 when it is f64. States are in pre's type;
// sums and tanh are made in f32 (f64). Padding costs nothing: a step multiplies the sequences
// that still run.
//
// Saved for the backward pass: y. It is back-propagation through time with one product per step,
// and one product over all steps for U. Padding gets no gradient.
ElmanResult elman(const Tensor& pre, const Tensor& recurrent, const ElmanOptions& options = {});

namespace reference {
ElmanResult elman(const Tensor& pre, const Tensor& recurrent, const ElmanOptions& options);
}  // namespace reference

}  // namespace heddle::ops
