// Elements and rows picked by an index, and elements added at the places an index names. Each is
// the gradient of its counterpart. An index out of range is an Error; the index may be on the CPU
// when the numbers are elsewhere; sums are made in the order of the places, whatever the number of
// threads.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y[i, j, k] = x[index[i, j, k], j, k] for dim = 0, and so on. The index (i32 or i64) has x's rank,
// and in every other dimension at most x's size; y has the index's shape.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// y = x, and then y[index[i, j, k], j, k] += source[i, j, k] for dim = 0, and so on. The source has
// the index's shape; the index fits x as in gather().
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& source);

// y[i, ...] = x[index[i], ...]; index: [N].
Tensor index_select(const Tensor& x, const Tensor& index);

// y = x, and then y[index[i], ...] += source[i, ...]; index: [N], source: [N, ...].
Tensor index_add(const Tensor& x, const Tensor& index, const Tensor& source);

// Indices of the `count` largest of each row, largest first, of equals the first: i64 [..., count]
// for x [..., N]. No gradient. Rows with a NaN get some places, each once.
Tensor top_k(const Tensor& x, std::int64_t count);

// rows[b, at[0], ...] = row[b, 0, ...], in place: for a place that is a number in the device's
// memory (or in the CPU's), [1] i32, and may be another one when this is repeated
// (backend/repeat.h). A place outside of the rows is an Error where the host knows it, and else the
// nearest one that there is. Not recorded; neither may be on a tape.
void put_row(Tensor& rows, const Tensor& at, const Tensor& row);

// In plain ops; not for rows with a NaN, and numbers that differ by less than 1e-37 (in f64 1e-307)
// are equal.
namespace reference {
Tensor top_k(const Tensor& x, std::int64_t count);
}  // namespace reference

}  // namespace heddle::ops
