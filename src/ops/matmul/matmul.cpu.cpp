// matmul on the CPU: merges batch dimensions, packs b for the matrix kernels, some matrices at a
// time.
#include <algorithm>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/threads.h"
#include "ops/matmul/matmul.call.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/matrix.h"

namespace heddle::cpu {

namespace {

// Packed matrices made at a time: they stay in the cache until they are used.
constexpr std::int64_t kPackedBytes = std::int64_t{2} << 20;
// Elements from which on packing one matrix is work for all threads.
constexpr std::int64_t kLargeMatrix = std::int64_t{1} << 18;

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

struct BatchedProduct {
  Batches batches;
  GemmJob job;  // of the first product
  MatrixRef b;  // [K, N]
  DType operand = DType::f32;
  std::int64_t group = 1;  // matrices of b packed at a time
  std::int64_t packed_bytes = 0;
  char* packed = nullptr;
};

const void* advanced(const void* p, std::int64_t elements, DType dtype) {
  return static_cast<const char*>(p) + elements * static_cast<std::int64_t>(size_of(dtype));
}

void pack_matrices(const BatchedProduct& p, std::int64_t b_offset, std::int64_t b_step,
                   std::int64_t count) {
  const ProductKernels& table = kernels<ProductKernels>();
  const auto one = [&](std::int64_t i) {
    MatrixRef b = p.b;
    b.data = advanced(p.b.data, b_offset + i * b_step, p.operand);
    table.pack_b(p.operand, p.job.k, p.job.n, b, p.packed + i * p.packed_bytes);
  };
  if (count > 1 && p.job.k * p.job.n < kLargeMatrix) return parallel_chunks(count, one);
  for (std::int64_t i = 0; i < count; ++i) one(i);
}

// The products of the last batch dimension, starting at these offsets.
void run_inner(const BatchedProduct& p, std::int64_t a_at, std::int64_t b_at, std::int64_t y_at) {
  const int last = p.batches.rank - 1;
  const std::int64_t b_step = p.batches.b[last];
  const std::int64_t step = b_step == 0 ? p.batches.inner() : p.group;
  for (std::int64_t begin = 0; begin < p.batches.inner(); begin += step) {
    GemmJob job = p.job;
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
      pack_matrices(p, b_at + begin * b_step, b_step, job.batch);
    }
    kernels<ProductKernels>().run(p.operand, job);
  }
}

void run_outer(const BatchedProduct& p) {
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

// How the matrices of b are packed: how many at a time, and their size.
BatchedProduct layout_of(const ops::MatmulCall& c) {
  const std::int64_t k = c.a.size(-1), n = c.b.size(-1);
  BatchedProduct p;
  p.operand = c.a.dtype();
  p.batches = merged_batches(c.a, c.b, c.y);
  p.packed_bytes =
      static_cast<std::int64_t>(kernels<ProductKernels>().packed_bytes(p.operand, k, n));
  if (p.batches.b[p.batches.rank - 1] != 0)
    p.group = std::clamp<std::int64_t>(kPackedBytes / std::max<std::int64_t>(p.packed_bytes, 1), 1,
                                       std::max<std::int64_t>(p.batches.inner(), 1));
  return p;
}

void plan_matmul(ops::MatmulCall& c) {
  c.packed = packed_workspace(c.a.dtype(), c.a.size(-1), c.b.size(-1), c.y, layout_of(c).group);
}

void run_matmul(ops::MatmulCall& c) {
  if (c.y.elements() == 0) return;
  BatchedProduct p = layout_of(c);
  p.packed = static_cast<char*>(c.packed.mutable_raw());
  p.b = matrix_of(c.b);
  p.job.m = c.a.size(-2);
  p.job.n = c.b.size(-1);
  p.job.k = c.a.size(-1);
  p.job.packed_b = p.packed;
  p.job.a = matrix_of(c.a);
  p.job.c = c.y.mutable_raw();
  p.job.c_dtype = c.y.dtype();
  p.job.c_row_stride = p.job.n;
  run_outer(p);
}

}  // namespace

void add_matmul_routines() { add<ops::MatmulCall>({run_matmul, plan_matmul}); }

}  // namespace heddle::cpu
