#include "ops/matmul/matmul.h"

#include <algorithm>
#include <string>

#include "backend/cpu/threads.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"
#include "ops/support/product.h"

namespace heddle::ops {

namespace {

// Packed matrices made at a time: they stay in the cache until they are used.
constexpr std::int64_t kPackedBytes = std::int64_t{2} << 20;
// Elements from which on packing one matrix is work for all threads.
constexpr std::int64_t kLargeMatrix = std::int64_t{1} << 18;

Shape batch_of(const Tensor& x) {
  return Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2)));
}

Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

Tensor transposed(const Tensor& x) { return views::transpose(x, -2, -1); }

// The batch dimensions, merged where a, b and y all step through them evenly. The last one is the
// batch of one GEMM; the ones before it are loops around it.
struct Batches {
  int rank = 0;
  std::int64_t size[kMaxRank], a[kMaxRank], b[kMaxRank], y[kMaxRank];  // strides in elements

  void push(std::int64_t n, std::int64_t a_step, std::int64_t b_step, std::int64_t y_step) {
    if (n == 1 && rank > 0) return;
    const int i = rank - 1;
    const bool merges =
        rank > 0 &&
        (size[i] == 1 || (a[i] == n * a_step && b[i] == n * b_step && y[i] == n * y_step));
    if (merges)
      size[i] *= n;
    else
      size[rank++] = n;
    a[rank - 1] = a_step;
    b[rank - 1] = b_step;
    y[rank - 1] = y_step;
  }

  std::int64_t inner() const { return size[rank - 1]; }
  std::int64_t outer() const {
    std::int64_t count = 1;
    for (int i = 0; i + 1 < rank; ++i) count *= size[i];
    return count;
  }
};

Batches merged_batches(const Tensor& a, const Tensor& b, const Tensor& y) {
  Batches out;
  for (int i = 0; i + 2 < y.rank(); ++i)
    out.push(y.shape()[i], a.strides()[i], b.strides()[i], y.strides()[i]);
  if (out.rank == 0) out.push(1, 0, 0, 0);
  return out;
}

struct Product {
  Batches batches;
  cpu::GemmJob job;  // of the first product
  cpu::MatrixRef b;  // [K, N]
  DType operand = DType::f32;
  std::int64_t group = 1;  // matrices of b packed at a time
  std::int64_t packed_bytes = 0;
  char* packed = nullptr;
};

const void* advanced(const void* p, std::int64_t elements, DType dtype) {
  return static_cast<const char*>(p) + elements * static_cast<std::int64_t>(size_of(dtype));
}

void pack(const Product& p, std::int64_t b_offset, std::int64_t b_step, std::int64_t count) {
  const auto& kernels = cpu::kernels<cpu::ProductKernels>();
  const auto one = [&](std::int64_t i) {
    cpu::MatrixRef b = p.b;
    b.data = advanced(p.b.data, b_offset + i * b_step, p.operand);
    kernels.pack_b(p.operand, p.job.k, p.job.n, b, p.packed + i * p.packed_bytes);
  };
  if (count > 1 && p.job.k * p.job.n < kLargeMatrix) return cpu::parallel_chunks(count, one);
  for (std::int64_t i = 0; i < count; ++i) one(i);
}

// The products of the last batch dimension, starting at these offsets.
void run_inner(const Product& p, std::int64_t a_at, std::int64_t b_at, std::int64_t y_at) {
  const int last = p.batches.rank - 1;
  const std::int64_t b_step = p.batches.b[last];
  const std::int64_t step = b_step == 0 ? p.batches.inner() : p.group;
  for (std::int64_t begin = 0; begin < p.batches.inner(); begin += step) {
    cpu::GemmJob job = p.job;
    job.batch = std::min(step, p.batches.inner() - begin);
    job.a.data = advanced(job.a.data, a_at + begin * p.batches.a[last], p.operand);
    job.c = const_cast<void*>(  // NOLINT: y is ours
        advanced(job.c, y_at + begin * p.batches.y[last], job.c_dtype));
    job.a_batch_stride = p.batches.a[last];
    job.c_batch_stride = p.batches.y[last];
    job.b_batch_stride = b_step == 0 ? 0 : p.packed_bytes;
    // One b for all of them, and a goes on where it ended: rows of one larger matrix.
    if (b_step == 0 && job.a_batch_stride == job.m * job.a.row_stride &&
        job.c_batch_stride == job.m * job.c_row_stride) {
      job.m *= job.batch;
      job.batch = 1;
    }
    if (b_step == 0 || job.batch == 1) {
      job.packed_b = nullptr;
      job.b = p.b;
      job.b.data = advanced(p.b.data, b_at + begin * b_step, p.operand);
      job.room_for_b = p.packed;
    } else {
      pack(p, b_at + begin * b_step, b_step, job.batch);
    }
    cpu::kernels<cpu::ProductKernels>().run(p.operand, job);
  }
}

void run_all(const Product& p) {
  const Batches& n = p.batches;
  for (std::int64_t outer = 0; outer < n.outer(); ++outer) {
    std::int64_t rest = outer, a = 0, b = 0, y = 0;
    for (int i = n.rank - 2; i >= 0; --i) {
      const std::int64_t at = rest % n.size[i];
      rest /= n.size[i];
      a += at * n.a[i];
      b += at * n.b[i];
      y += at * n.y[i];
    }
    run_inner(p, a, b, y);
  }
}

// a · b without the tape; shapes fit.
Tensor product(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  Tensor y = Tensor::empty(with_matrix(batch, m, n), a.dtype(), a.device());
  const Tensor wide_a = views::broadcast(a, with_matrix(batch, m, k));
  const Tensor wide_b = views::broadcast(b, with_matrix(batch, k, n));
  Product p;
  p.operand = a.dtype();
  p.batches = merged_batches(wide_a, wide_b, y);
  p.packed_bytes =
      static_cast<std::int64_t>(kernels<cpu::ProductKernels>().packed_bytes(p.operand, k, n));
  if (p.batches.b[p.batches.rank - 1] != 0)
    p.group = std::clamp<std::int64_t>(kPackedBytes / std::max<std::int64_t>(p.packed_bytes, 1), 1,
                                       std::max<std::int64_t>(p.batches.inner(), 1));
  Tensor packed = packed_workspace(p.operand, k, n, y, p.group);
  const double flops = 2 * count_of(y) * static_cast<double>(k);
  if (!launch(y, {flops, bytes_of(a) + bytes_of(b) + bytes_of(y)}) || y.elements() == 0) return y;
  p.packed = static_cast<char*>(packed.mutable_raw());
  p.b = matrix_of(wide_b);
  p.job.m = m;
  p.job.n = n;
  p.job.k = k;
  p.job.packed_b = p.packed;
  p.job.a = matrix_of(wide_a);
  p.job.c = y.mutable_raw();
  p.job.c_dtype = y.dtype();
  p.job.c_row_stride = n;
  run_all(p);
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
