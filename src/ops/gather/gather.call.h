// The calls that gather makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y[i] = x[i with i_dim = ids[i]]; ids and y are contiguous and of one shape.
struct GatherCall {
  static constexpr const char* kName = "gather";
  int dim;
  const Tensor& ids;
  const Tensor& x;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {0, bytes_of(ids) + 2 * bytes_of(y)}; }
};

// sum[i with i_dim = ids[i]] += source[i]. The sum is in the compute type (f32; f64 for f64).
struct ScatterAddCall {
  static constexpr const char* kName = "scatter_add";
  int dim;
  const Tensor& ids;
  const Tensor& source;
  Tensor& sum;

  const Tensor& output() const { return sum; }
  Cost cost() const { return {count_of(source), bytes_of(ids) + 3 * bytes_of(source)}; }
};

// y[i, :] = x[ids[i], :]; all contiguous.
struct IndexSelectCall {
  static constexpr const char* kName = "index_select";
  const Tensor& ids;  // [N]
  const Tensor& x;    // [R, ...]
  Tensor& y;          // [N, ...]

  const Tensor& output() const { return y; }
  Cost cost() const { return {0, bytes_of(ids) + 2 * bytes_of(y)}; }
};

// y[r, :] = x[r, :] + Σ over i with ids[i] = r of source[i, :]; x may be undefined: zeros.
struct IndexAddCall {
  static constexpr const char* kName = "index_add";
  const Tensor& ids;               // [N]
  const Tensor& x;                 // [R, ...]
  const Tensor& source;            // [N, ...]
  Tensor& y;                       // [R, ...]
  Tensor starts = {}, order = {};  // workspace

  const Tensor& output() const { return y; }
  Cost cost() const {
    const double read = bytes_of(source) + bytes_of(ids) + backend::bytes_or_none(x);
    return {count_of(source), read + bytes_of(y)};
  }
};

// places[r, :] = indices of the largest of x[r, :]; both contiguous.
struct TopKCall {
  static constexpr const char* kName = "top_k";
  const Tensor& x;  // [..., N], f32 or f64
  Tensor& places;   // [..., count] i64

  const Tensor& output() const { return places; }
  Cost cost() const { return {count_of(x), bytes_of(x) + bytes_of(places)}; }
};

// rows[b, at[0], ...] = row[b, 0, ...]; all contiguous and of one type.
struct PutRowCall {
  static constexpr const char* kName = "put_row";
  const Tensor& at;   // [1] i32
  const Tensor& row;  // [B, 1, ...]
  Tensor& rows;       // [B, R, ...]

  const Tensor& output() const { return rows; }
  Cost cost() const { return {0, 2 * bytes_of(row)}; }
};

}  // namespace heddle::ops
