#include <utility>

#include "heddle/tensor.h"
#include "tensor/storage.h"

namespace heddle::views {

namespace {

// Strides for `shape` on x's layout, if there are any: runs of x's dimensions that lie in memory
// like one dimension may be cut differently, others must keep their borders.
bool reshape_strides(const Tensor& x, const Shape& shape, Strides& out) {
  out = contiguous_strides(shape);
  if (x.contiguous() || x.elements() == 0) return true;
  const Shape& from = x.shape();
  int d = shape.rank() - 1;
  std::int64_t run = 1;  // elements of x's current run, counted from its innermost dimension
  std::int64_t step = x.strides().back();
  for (int i = from.rank() - 1; i >= 0; --i) {
    run *= from[i];
    const bool run_ends = i == 0 || (from[i - 1] != 1 && x.strides()[i - 1] != run * step);
    if (!run_ends) continue;
    std::int64_t taken = 1;
    while (d >= 0 && (taken < run || shape[d] == 1)) {
      out[d] = taken * step;
      taken *= shape[d--];
    }
    if (taken != run) return false;
    run = 1;
    if (i > 0) step = x.strides()[i - 1];
  }
  return d < 0;
}

}  // namespace

Shape resolve_reshape(const Tensor& x, const Shape& shape) {
  Shape out = shape;
  int open = -1;
  std::int64_t known = 1;
  bool bad = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      bad = bad || open >= 0;
      open = i;
    } else {
      bad = bad || shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  const std::int64_t count = x.elements();
  if (!bad && open >= 0) {
    bad = known == 0 || count % known != 0;
    if (!bad) out[open] = count / known;
  } else if (!bad) {
    bad = known != count;
  }
  if (bad)
    fail(ErrorCode::shape_mismatch, "reshape", "the new shape does not hold as many elements",
         std::to_string(count) + " elements as in " + x.describe(), heddle::to_string(shape));
  return out;
}

bool can_reshape(const Tensor& x, const Shape& shape) {
  Strides strides;
  return elements_of(shape) == x.elements() && reshape_strides(x, shape, strides);
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape target = resolve_reshape(x, shape);
  Strides strides;
  if (!reshape_strides(x, target, strides))
    fail(ErrorCode::invalid_argument, "reshape", "this layout cannot be reshaped without a copy",
         "a layout that fits " + heddle::to_string(target),
         heddle::to_string(x.shape()) + " with strides " + heddle::to_string(x.strides()));
  return rearranged(*x.impl(), target, strides);
}

Tensor transpose(const Tensor& x, int dim0, int dim1) {
  const int a = normalize_dim(dim0, x.rank(), "transpose");
  const int b = normalize_dim(dim1, x.rank(), "transpose");
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return rearranged(*x.impl(), shape, strides);
}

Tensor permute(const Tensor& x, std::span<const int> order) {
  unsigned seen = 0;
  Shape shape;
  Strides strides;
  for (const int dim : order) {
    const int d = normalize_dim(dim, x.rank(), "permute");
    seen |= 1u << d;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  if (shape.rank() != x.rank() || seen != (1u << x.rank()) - 1)
    fail(ErrorCode::invalid_argument, "permute", "the order is not a permutation",
         "each of " + std::to_string(x.rank()) + " dimensions once",
         std::to_string(order.size()) + " entries for " + x.describe());
  return rearranged(*x.impl(), shape, strides);
}

Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const int d = normalize_dim(dim, x.rank(), "slice");
  const std::int64_t size = x.shape()[d];
  if (begin < 0 || end < begin || end > size)
    fail(ErrorCode::out_of_range, "slice",
         "the range lies outside of dimension " + std::to_string(d),
         "0 <= begin <= end <= " + std::to_string(size),
         std::to_string(begin) + " to " + std::to_string(end) + " of " + x.describe());
  if (step < 1)
    fail(ErrorCode::invalid_argument, "slice", "the step is not positive", "1 or more",
         std::to_string(step));
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[d] = end == begin ? 0 : (end - begin - 1) / step + 1;
  if (shape[d] > 1) strides[d] *= step;  // a step past the end may be any number
  return selected(*x.impl(), shape, strides, shape[d] == 0 ? 0 : begin * x.strides()[d]);
}

Tensor broadcast(const Tensor& x, const Shape& shape) {
  if (broadcast_shapes(x.shape(), shape, "broadcast") != shape)
    fail(ErrorCode::shape_mismatch, "broadcast", "the tensor is larger than the shape asked for",
         heddle::to_string(shape), x.describe());
  Strides strides = shape;
  for (int i = 1; i <= shape.rank(); ++i) {
    const bool stretched = i > x.rank() || x.shape()[x.rank() - i] == 1;
    strides[shape.rank() - i] = stretched ? 0 : x.strides()[x.rank() - i];
  }
  return selected(*x.impl(), shape, strides, 0);
}

}  // namespace heddle::views
