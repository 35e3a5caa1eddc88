// The calls that attention makes to a device.
#pragma once

#include <array>
#include <span>

#include "backend/routine.h"
#include "ops/attention/attention.h"
#include "ops/attention/mask.h"

namespace heddle::ops {

// Checked inputs of both directions. Rows of q, k, v and of the pair masks have contiguous
// elements, whatever the other strides are; the rest is contiguous. Undefined: absent.
struct AttentionInputs {
  bool additive = false;          // the score is w · tanh(q + k)
  AttentionOptions options;       // with its default scale filled in; tensors are those below
  Tensor q, k, v;                 // [B, Tq, H, D], [B, Tk, G, D], [B, Tk, G, E]
  Tensor w;                       // [H, D], of the additive score
  Tensor bias, sinks;             // [H, Tq + Tk - 1], [H]
  Tensor additive_mask, allowed;  // [B or 1, H or 1, Tq, Tk]
  VisibleKeys keys;

  double visible_pairs() const { return keys.pairs * static_cast<double>(q.size(2)); }  // by head
  // Operations of one pair's score. A tanh counts as about twenty.
  double score_cost() const { return (additive ? 20 : 2) * static_cast<double>(q.size(3)); }
  double value_width() const { return static_cast<double>(v.size(3)); }
  double bytes() const {
    return backend::bytes_of(q) + backend::bytes_of(k) + backend::bytes_of(v);
  }
};

// Intervals of a mask that is the same for all sequences: a device can make them itself, so that
// nothing is brought to it in the middle of a step.
struct IntervalsCall {
  static constexpr const char* kName = "attention, intervals";
  QueryWindow window;
  std::int64_t end;   // past the last key that any query sees
  Tensor& intervals;  // [2, B, Tq] i32
  Tensor& ends;       // [B] i32

  const Tensor& output() const { return intervals; }
  Cost cost() const { return {}; }
};

struct AttentionCall {
  static constexpr const char* kName = "attention";
  const AttentionInputs& in;
  Tensor& y;          // [B, Tq, H, E]
  Tensor& row_sums;   // [B, H, Tq]: log2 Σ exp(s), or Σ max(s, 0); 0 where a row sees no key
  Tensor& row_parts;  // [2, B, H, Tq]: log2 Σ exp(s) as m and Σ exp(s) / 2^m; may be undefined
  std::array<Tensor, 4> workspace = {};  // its layout is known to the device's plan only

  const Tensor& output() const { return y; }
  // Two products, and about ten operations of the softmax.
  Cost cost() const {
    return {in.visible_pairs() * (in.score_cost() + 2 * in.value_width() + 10), 2 * in.bytes()};
  }
};

// Several calls that know nothing of each other, as one piece of work.
struct AttentionEachCall {
  static constexpr const char* kName = "attention, many sequences";
  std::span<AttentionCall> parts;  // one or more

  const Tensor& output() const { return parts.front().y; }
  Cost cost() const {
    Cost all;
    for (const AttentionCall& part : parts) all += part.cost();
    return all;
  }
};

// Gradients that are not wanted are undefined.
struct AttentionBackwardCall {
  static constexpr const char* kName = "attention, backward";
  const AttentionInputs& in;
  const Tensor& y;
  const Tensor& row_sums;
  const Tensor& row_parts;
  const Tensor& dy;  // contiguous
  Tensor& dq;        // all contiguous
  Tensor& dk;
  Tensor& dv;
  Tensor& dw;
  Tensor& d_bias;
  Tensor& d_sinks;
  Tensor& d_additive_mask;  // zeros before
  std::array<Tensor, 16> workspace = {};

  const Tensor& output() const { return dq; }
  // Five products.
  Cost cost() const {
    return {in.visible_pairs() * (3 * in.score_cost() + 4 * in.value_width() + 20), 3 * in.bytes()};
  }
};

}  // namespace heddle::ops
