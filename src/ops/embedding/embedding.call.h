// The calls that embedding makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y[i, :] = table[ids[i], :] in y's type; ids are known to be rows of the table. All contiguous.
struct EmbeddingCall {
  static constexpr const char* kName = "embedding";
  const Tensor& table;  // [V, C]
  const Tensor& ids;    // [...]
  Tensor& y;            // [..., C]
  // Workspace, where the device holds the table in a form of its own: the rows of the ids, and
  // their numbers.
  Tensor rows = {}, numbers = {};

  const Tensor& output() const { return y; }
  Cost cost() const {
    const double read = count_of(y) * static_cast<double>(size_of(table.dtype()));
    return {0, read + bytes_of(ids) + bytes_of(y)};
  }
};

// dtable[r, :] = Σ over i with ids[i] = r of dy[i, :]; with `add`, dtable[r, :] += it.
struct EmbeddingBackwardCall {
  static constexpr const char* kName = "embedding, backward";
  bool add;
  const Tensor& ids;
  const Tensor& dy;                // [..., C]
  Tensor& dtable;                  // [V, C]
  Tensor starts = {}, order = {};  // workspace

  const Tensor& output() const { return dtable; }
  Cost cost() const {
    const double written =
        add ? 2 * count_of(dy) * static_cast<double>(size_of(dtable.dtype())) : bytes_of(dtable);
    return {count_of(dy), bytes_of(dy) + bytes_of(ids) + written};
  }
};

}  // namespace heddle::ops
