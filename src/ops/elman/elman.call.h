// The calls that elman makes to a device.
#pragma once

#include "backend/routine.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// Operations of the products of all steps: x is [B, T, H].
inline double scan_flops(const Tensor& x) {
  return 2 * backend::count_of(x) * static_cast<double>(x.size(2));
}

// The scan over whole sequences. All contiguous.
struct ElmanCall {
  static constexpr const char* kName = "elman";
  const Tensor& pre;        // [B, T, H]
  const Tensor& recurrent;  // U [H, H]
  const Tensor& h0;         // [B, H], or undefined: zeros
  const Tensor& lengths;    // [B] in i64, 0..T, or undefined: all T
  bool reverse;
  Tensor& y;      // [B, T, H]
  Tensor& last;   // [B, H]
  Tensor& order;  // [2, B] in i64: sequences by length, the longest first, and their lengths
  Tensor prepared = {}, rows = {}, sums = {};  // workspace

  const Tensor& output() const { return y; }
  Cost cost() const {
    return {scan_flops(pre) + 10 * backend::count_of(pre),
            2 * backend::bytes_of(pre) + backend::bytes_of(prepared)};
  }
};

// dpre_t = (dy_t + Uᵀ dpre_{t+1}) · (1 - y_t²), and dh0 = Uᵀ dpre of the first step.
struct ElmanBackwardCall {
  static constexpr const char* kName = "elman, backward";
  const Tensor& y;
  const Tensor& recurrent;
  const Tensor& order;
  bool reverse;
  const Tensor& dy;                            // as y, or undefined: zeros
  const Tensor& dlast;                         // [B, H], or undefined: zeros
  Tensor& dpre;                                // as y
  Tensor& dh0;                                 // [B, H]; undefined: not wanted
  Tensor prepared = {}, rows = {}, sums = {};  // workspace

  const Tensor& output() const { return dpre; }
  Cost cost() const {
    return {scan_flops(y) + 4 * backend::count_of(y),
            3 * backend::bytes_of(y) + backend::bytes_of(prepared)};
  }
};

// dU[n, k] = Σ_(b, t) dpre[b, t, n] · h_before[b, t, k]
struct ElmanRecurrentGradientCall {
  static constexpr const char* kName = "elman, gradient of recurrent";
  const Tensor& y;
  const Tensor& h0;
  const Tensor& order;
  bool reverse;
  const Tensor& dpre;
  Tensor& du;                         // [H, H] in the type that sums are made in
  Tensor before = {}, prepared = {};  // workspace

  const Tensor& output() const { return du; }
  Cost cost() const { return {scan_flops(y), 3 * backend::bytes_of(y) + backend::bytes_of(du)}; }
};

}  // namespace heddle::ops
