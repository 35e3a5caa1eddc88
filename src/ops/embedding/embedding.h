// Rows of a table by their number.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y[..., c] = table[ids[...], c] in the type `out`: f32, bf16 or f16 from a table in f32 or bf16,
// f64 from one in f64. table: [V, C]; ids: any shape, i32 or i64, each in [0, V);
// they may be on the CPU when the table is elsewhere.
//
// The table's gradient is dense [V, C] in the table's type: the sum of the cotangents of all places
// with that id, added in the order of the places; zero for rows that no id names.
Tensor embedding(const Tensor& table, const Tensor& ids, DType out);

// In plain ops.
namespace reference {
Tensor embedding(const Tensor& table, const Tensor& ids, DType out);
}  // namespace reference

}  // namespace heddle::ops
