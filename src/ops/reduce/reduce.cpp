#include "ops/reduce/reduce.h"

#include "ops/copy/copy.h"
#include "ops/reduce/reduce.call.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

// [outer, length, inner] around the dimensions first..last.
ReduceSplit split_at(const Shape& shape, int first, int last) {
  ReduceSplit s;
  for (int i = 0; i < first; ++i) s.outer *= shape[i];
  for (int i = first; i <= last; ++i) s.length *= shape[i];
  for (int i = last + 1; i < shape.rank(); ++i) s.inner *= shape[i];
  return s;
}

// Reduces the dimensions first..last of x to size 1, without the tape.
Tensor reduced(Reduce kind, const Tensor& input, int first, int last, double scale) {
  const Tensor x = dense(input);
  Shape shape = x.shape();
  for (int i = first; i <= last; ++i) shape[i] = 1;
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  launch(ReduceCall{
      .kind = kind, .split = split_at(x.shape(), first, last), .scale = scale, .x = x, .y = y});
  return y;
}

Shape without(const Shape& shape, int dim) {
  Shape out = shape;
  out.erase(dim);
  return out;
}

// y = scale · Σ x, so dx = scale · dy for every element.
Tensor scaled_sum(const char* op, const Tensor& x, int first, int last, const Shape& shape,
                  double factor) {
  Tensor y = views::reshape(reduced(Reduce::sum, x, first, last, factor), shape);
  if (tracked({&x}))
    record(op, {&x}, {&y}, [from = x.shape(), first, last, factor](VjpContext& c) {
      Shape kept = from;
      for (int i = first; i <= last; ++i) kept[i] = 1;
      const Tensor dy = views::reshape(dense(c.cotangent()), kept);
      c.add(0, views::broadcast(factor == 1 ? dy : scale(dy, factor), from));
    });
  return y;
}

Tensor max_backward(const Tensor& input, const Tensor& y, const Tensor& cotangent, int dim) {
  const Tensor x = dense(input);
  const Tensor dy = dense(cotangent);
  Tensor dx = empty_like(x);
  launch(
      MaxBackwardCall{.split = split_at(x.shape(), dim, dim), .x = x, .y = y, .dy = dy, .dx = dx});
  return dx;
}

void check_not_empty(const char* op, const Tensor& x, int dim) {
  if (x.shape()[dim] == 0)
    fail(ErrorCode::invalid_argument, op, "argument x has nothing to reduce",
         "a size of 1 or more in dimension " + std::to_string(dim), x.describe());
}

}  // namespace

Tensor sum(const Tensor& x, int dim, bool keep) {
  if (is_half(x)) return to_half(sum(wide(x), dim, keep));
  check_compute({"sum", "x", x});
  const int d = normalize_dim(dim, x.rank(), "sum");
  Shape shape = without(x.shape(), d);
  if (keep) shape.insert(d, 1);
  return scaled_sum("sum", x, d, d, shape, 1);
}

Tensor mean(const Tensor& x, int dim, bool keep) {
  if (is_half(x)) return to_half(mean(wide(x), dim, keep));
  check_compute({"mean", "x", x});
  const int d = normalize_dim(dim, x.rank(), "mean");
  check_not_empty("mean", x, d);
  Shape shape = without(x.shape(), d);
  if (keep) shape.insert(d, 1);
  return scaled_sum("mean", x, d, d, shape, 1.0 / static_cast<double>(x.shape()[d]));
}

Tensor max(const Tensor& x, int dim, bool keep) {
  if (is_half(x)) return to_half(max(wide(x), dim, keep));
  check_compute({"max", "x", x});
  const int d = normalize_dim(dim, x.rank(), "max");
  check_not_empty("max", x, d);
  Tensor y = reduced(Reduce::max, x, d, d, 1);
  if (!keep) y = views::reshape(y, without(x.shape(), d));
  if (tracked({&x}))
    record("max", {&x}, {&y}, [x = Saved(x), y = Saved(y.detach()), d](VjpContext& c) {
      c.add(0, max_backward(x.get(), y.get(), c.cotangent(), d));
    });
  return y;
}

Tensor sum_all(const Tensor& x) {
  if (is_half(x)) return to_half(sum_all(wide(x)));
  check_compute({"sum_all", "x", x});
  return x.rank() == 0 ? x : scaled_sum("sum_all", x, 0, x.rank() - 1, {}, 1);
}

Tensor mean_all(const Tensor& x) {
  if (is_half(x)) return to_half(mean_all(wide(x)));
  check_compute({"mean_all", "x", x});
  if (x.elements() == 0)
    fail(ErrorCode::invalid_argument, "mean_all", "argument x has no elements", "one or more",
         x.describe());
  if (x.rank() == 0) return x;
  return scaled_sum("mean_all", x, 0, x.rank() - 1, {}, 1 / static_cast<double>(x.elements()));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (is_half(x)) return to_half(sum_to(wide(x), shape));
  check_compute({"sum_to", "x", x});
  if (x.shape() == shape) return x;
  if (broadcast_shapes(x.shape(), shape, "sum_to") != x.shape())
    fail(ErrorCode::shape_mismatch, "sum_to", "argument x is not a broadcast of the shape",
         to_string(shape), x.describe());
  Tensor y = x;
  // Runs of neighbouring dimensions that vanish are summed in one pass, from the inside out.
  const int extra = x.rank() - shape.rank();
  const auto vanishes = [&](int i) {
    return i < extra || (shape[i - extra] == 1 && x.shape()[i] != 1);
  };
  for (int last = x.rank() - 1; last >= 0; --last) {
    if (!vanishes(last)) continue;
    int first = last;
    while (first > 0 && vanishes(first - 1)) --first;
    y = reduced(Reduce::sum, y, first, last, 1);
    last = first;
  }
  y = views::reshape(y, shape);
  if (tracked({&x}))
    record("sum_to", {&x}, {&y},
           [from = x.shape()](VjpContext& c) { c.add(0, views::broadcast(c.cotangent(), from)); });
  return y;
}

}  // namespace heddle::ops
