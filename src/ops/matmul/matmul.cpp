#include "ops/matmul/matmul.h"

#include <string>

#include "ops/copy/copy.h"
#include "ops/matmul/matmul.call.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

Shape batch_of(const Tensor& x) {
  return Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2)));
}

Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

Tensor transposed(const Tensor& x) { return views::transpose(x, -2, -1); }

// a · b without the tape; shapes fit.
Tensor product(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  Tensor y = Tensor::empty(with_matrix(batch, m, n), a.dtype(), a.device());
  const Tensor wide_a = views::broadcast(a, with_matrix(batch, m, k));
  const Tensor wide_b = views::broadcast(b, with_matrix(batch, k, n));
  launch(MatmulCall{wide_a, wide_b, bytes_of(a) + bytes_of(b), y});
  return y;
}

// db = Σ over the batch of aᵀ·dy. Where b has no batch, the sum is the product's own: the rows of
// all batches are one long K.
Tensor right_gradient(const Tensor& a, const Tensor& b, const Tensor& dy) {
  if (elements_of(batch_of(b)) == 1 && batch_of(a) == batch_of(dy)) {
    const std::int64_t k = a.size(-1), n = dy.size(-1);
    const std::int64_t rows = elements_of(batch_of(a)) * a.size(-2);
    return views::reshape(product(transposed(as_matrix(a, rows, k)), as_matrix(dy, rows, n)),
                          b.shape());
  }
  return sum_to(product(transposed(a), dy), b.shape());
}

}  // namespace

// da = dy·bᵀ, db = aᵀ·dy, each summed over the batch dimensions it was broadcast in
Tensor matmul(const Tensor& a, const Tensor& b) {
  if (is_half(a)) {
    check_dtype({"matmul", "b", b}, DType::f16);
    return to_half(matmul(wide(a), wide(b)));
  }
  check_compute({"matmul", "a", a});
  check_dtype({"matmul", "b", b}, a.dtype());
  check_same_device({"matmul", "b", b}, a);
  check_rank_at_least({"matmul", "a", a}, 2);
  check_rank_at_least({"matmul", "b", b}, 2);
  if (a.size(-1) != b.size(-2))
    fail(ErrorCode::shape_mismatch, "matmul", "argument b does not fit a, " + a.describe(),
         "[..., " + std::to_string(a.size(-1)) + ", N]", b.describe());
  Tensor y = product(a, b);
  if (tracked({&a, &b}))
    record("matmul", {&a, &b}, {&y}, [a = Saved(a), b = Saved(b)](VjpContext& c) {
      const Tensor& dy = c.cotangent();
      if (c.needs(0)) c.add(0, sum_to(product(dy, transposed(b.get())), a.get().shape()));
      if (c.needs(1)) c.add(1, right_gradient(a.get(), b.get(), dy));
    });
  return y;
}

}  // namespace heddle::ops
