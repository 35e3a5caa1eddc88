#include "ops/gather/gather.h"

#include <string>
#include <utility>

#include "ops/copy/copy.h"
#include "ops/gather/gather.call.h"
#include "ops/support/index.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// The index picks along `dim` of `shape`; elsewhere it may be smaller.
void check_fits(const char* op, const Tensor& index, const Shape& shape, int dim) {
  for (int i = 0; i < shape.rank(); ++i)
    if (i != dim && index.shape()[i] > shape[i])
      fail(ErrorCode::shape_mismatch, op, "argument index",
           "at most the sizes of " + to_string(shape) + " but in dimension " + std::to_string(dim),
           index.describe());
}

// Checks shapes and values; returns the index in row-major order.
Tensor checked_index(const char* op, const Tensor& index, const Tensor& x, int dim) {
  check_rank({op, "index", index}, x.rank());
  check_fits(op, index, x.shape(), dim);
  return entered({op, "index", index}, x.size(dim), x);
}

Tensor checked_rows(const char* op, const Tensor& index, const Tensor& x) {
  check_rank({op, "index", index}, 1);
  return entered({op, "index", index}, x.size(0), x);
}

Tensor gathered(const Tensor& input, int dim, const Tensor& ids) {
  const Tensor x = dense(input);
  Tensor y = Tensor::empty(ids.shape(), x.dtype(), x.device());
  launch(GatherCall{dim, ids, x, y});
  return y;
}

// sum[ids] += source, in a sum of the compute type; the result in the source's type.
Tensor scattered(Tensor sum, int dim, const Tensor& ids, const Tensor& input) {
  const Tensor source = dense(input);
  launch(ScatterAddCall{dim, ids, source, sum});
  return cast(sum, source.dtype());
}

// Many small terms are lost in a bf16 sum: it is made in f32.
Tensor zero_sum(const Shape& shape, const Tensor& like) {
  return Tensor::zeros(shape, parameter_dtype(like), like.device());
}

Tensor selected(const Tensor& input, const Tensor& ids) {
  const Tensor x = dense(input);
  Shape shape = x.shape();
  shape[0] = ids.elements();
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  launch(IndexSelectCall{ids, x, y});
  return y;
}

// x may be undefined: zeros.
Tensor rows_added(const Tensor& base, const Shape& shape, const Tensor& ids, const Tensor& input) {
  const Tensor x = base.defined() ? dense(base) : Tensor();
  const Tensor source = dense(input);
  Tensor y = Tensor::empty(shape, source.dtype(), source.device());
  launch(IndexAddCall{ids, x, source, y});
  return y;
}

}  // namespace

// dx = scatter_add(0, dim, index, dy)
Tensor gather(const Tensor& x, int dim, const Tensor& index) {
  if (is_half(x)) return to_half(gather(wide(x), dim, index));
  check_compute({"gather", "x", x});
  check_rank_at_least({"gather", "x", x}, 1);
  const int d = normalize_dim(dim, x.rank(), "gather");
  const Tensor ids = checked_index("gather", index, x, d);
  Tensor y = gathered(x, d, ids);
  if (tracked({&x}))
    record("gather", {&x}, {&y}, [ids = Saved(ids), d, from = x.shape()](VjpContext& c) {
      const Tensor& dy = c.cotangent();
      c.add(0, scattered(zero_sum(from, dy), d, ids.get(), dy));
    });
  return y;
}

// dx = dy, dsource = gather(dy, dim, index)
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& source) {
  if (is_half(x)) {
    check_dtype({"scatter_add", "source", source}, DType::f16);
    return to_half(scatter_add(wide(x), dim, index, wide(source)));
  }
  check_compute({"scatter_add", "x", x});
  check_rank_at_least({"scatter_add", "x", x}, 1);
  const int d = normalize_dim(dim, x.rank(), "scatter_add");
  const Tensor ids = checked_index("scatter_add", index, x, d);
  check_dtype({"scatter_add", "source", source}, x.dtype());
  check_shape({"scatter_add", "source", source}, ids.shape());
  check_same_device({"scatter_add", "source", source}, x);
  Tensor sum = zero_sum(x.shape(), x);
  copy_into(sum, x.detach());
  Tensor y = scattered(std::move(sum), d, ids, source);
  if (tracked({&x, &source}))
    record("scatter_add", {&x, &source}, {&y}, [ids = Saved(ids), d](VjpContext& c) {
      if (c.needs(0)) c.add(0, c.cotangent());
      if (c.needs(1)) c.add(1, gathered(c.cotangent(), d, ids.get()));
    });
  return y;
}

// dx = index_add(0, index, dy)
Tensor index_select(const Tensor& x, const Tensor& index) {
  if (is_half(x)) return to_half(index_select(wide(x), index));
  check_compute({"index_select", "x", x});
  check_rank_at_least({"index_select", "x", x}, 1);
  const Tensor ids = checked_rows("index_select", index, x);
  Tensor y = selected(x, ids);
  if (tracked({&x}))
    record("index_select", {&x}, {&y}, [ids = Saved(ids), from = x.shape()](VjpContext& c) {
      c.add(0, rows_added(Tensor(), from, ids.get(), c.cotangent()));
    });
  return y;
}

// dx = dy, dsource = index_select(dy, index)
Tensor index_add(const Tensor& x, const Tensor& index, const Tensor& source) {
  if (is_half(x)) {
    check_dtype({"index_add", "source", source}, DType::f16);
    return to_half(index_add(wide(x), index, wide(source)));
  }
  check_compute({"index_add", "x", x});
  check_rank_at_least({"index_add", "x", x}, 1);
  const Tensor ids = checked_rows("index_add", index, x);
  check_dtype({"index_add", "source", source}, x.dtype());
  Shape wanted = x.shape();
  wanted[0] = ids.elements();
  check_shape({"index_add", "source", source}, wanted);
  check_same_device({"index_add", "source", source}, x);
  Tensor y = rows_added(x, x.shape(), ids, source);
  if (tracked({&x, &source}))
    record("index_add", {&x, &source}, {&y}, [ids = Saved(ids)](VjpContext& c) {
      if (c.needs(0)) c.add(0, c.cotangent());
      if (c.needs(1)) c.add(1, selected(c.cotangent(), ids.get()));
    });
  return y;
}

}  // namespace heddle::ops
