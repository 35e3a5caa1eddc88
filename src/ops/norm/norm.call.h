// The calls of rms_norm and layer_norm to a device: the same one, without and with the mean.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

// y = (x - mean)·rstd·gain + bias, over rows of the last dimension. All contiguous; residual (then
// sum too), gain, bias, mean and rstd may be undefined.
struct NormCall {
  static constexpr const char* kName = "norm";

  bool centred;  // the mean is subtracted (layer_norm); else it counts as 0 (rms_norm)
  double eps;
  const Tensor& x;         // [..., C]
  const Tensor& residual;  // as x: the normalised input is sum = x + residual
  const Tensor& gain;      // [C]
  const Tensor& bias;      // [C]
  Tensor& sum;
  Tensor& y;
  Tensor& mean;  // [rows]; undefined if nothing is subtracted or no backward pass will follow
  Tensor& rstd;  // [rows]

  const Tensor& output() const { return y; }
  Cost cost() const {
    return {6 * backend::count_of(x), (sum.defined() ? 4 : 2) * backend::bytes_of(x)};
  }
};

// x is the normalised input (the sum, where a residual was added). dsum, if there is one, is added
// to dx. dgain and dbias are undefined where they are not wanted.
struct NormBackwardCall {
  static constexpr const char* kName = "norm, backward";

  bool centred;
  const Tensor& x;
  const Tensor& gain;
  const Tensor& mean;
  const Tensor& rstd;
  const Tensor& dy;
  const Tensor& dsum;
  Tensor& dx;
  Tensor& dgain;
  Tensor& dbias;
  Tensor dgain_partial = {}, dbias_partial = {};  // workspace

  const Tensor& output() const { return dx; }
  Cost cost() const {
    using backend::bytes_or_none;
    return {12 * backend::count_of(x), 3 * backend::bytes_of(x) + bytes_or_none(dsum) +
                                           bytes_or_none(dgain_partial) +
                                           bytes_or_none(dbias_partial)};
  }
};

}  // namespace heddle::ops
