#include "ops/embedding/embedding.h"

#include "ops/embedding/embedding.kernels.h"
#include "ops/support/index.h"
#include "ops/support/op.h"
#include "ops/support/stream.h"

namespace heddle::ops {

namespace {

void check_out(const Tensor& table, DType out) {
  const bool wide = table.dtype() == DType::f64;
  const bool ok = wide ? out == DType::f64 : out == DType::f32 || out == DType::bf16;
  if (!ok)
    fail(ErrorCode::dtype_mismatch, "embedding", "argument out",
         wide ? "f64 from a table in f64" : "f32 or bf16 from a table in f32 or bf16",
         to_string(out));
}

// dtable[r, c] = Σ over i with ids[i] = r of dy[i, c]
Tensor backward(const Tensor& ids, const Tensor& cotangent, const Shape& shape, DType dtype) {
  const Tensor dy = dense(cotangent);                        // [..., C]
  Tensor dtable = Tensor::empty(shape, dtype, dy.device());  // [V, C]
  const PurposeScope scope(Purpose::workspace);
  Tensor starts = Tensor::empty({shape[0] + 2}, DType::i64, dy.device());
  Tensor order = Tensor::empty({ids.elements()}, DType::i64, dy.device());
  if (launch(dtable, {count_of(dy), bytes_of(dy) + bytes_of(ids) + bytes_of(dtable)})) {
    cpu::EmbeddingBackwardArgs args;
    args.table_dtype = dtype;
    args.out_dtype = dy.dtype();
    args.id_dtype = ids.dtype();
    args.count = ids.elements();
    args.rows = shape[0];
    args.width = shape[1];
    args.ids = ids.raw();
    args.dy = dy.raw();
    args.dtable = dtable.mutable_raw();
    args.starts = starts.mutable_data<std::int64_t>();
    args.order = order.mutable_data<std::int64_t>();
    kernels<cpu::EmbeddingKernels>().backward(args);
  }
  return dtable;
}

}  // namespace

Tensor embedding(const Tensor& table_in, const Tensor& ids_in, DType out) {
  check_compute({"embedding", "table", table_in});
  check_rank({"embedding", "table", table_in}, 2);
  check_out(table_in, out);
  check_index({"embedding", "ids", ids_in});
  check_same_device({"embedding", "ids", ids_in}, table_in);
  const Tensor table = dense(table_in);  // [V, C]
  const Tensor ids = dense(ids_in);
  check_indices({"embedding", "ids", ids}, table.size(0));
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  Tensor y = Tensor::empty(shape, out, table.device());  // [..., C]
  const double read = count_of(y) * static_cast<double>(size_of(table.dtype()));
  if (launch(y, {0, read + bytes_of(ids) + bytes_of(y)}))
    kernels<cpu::EmbeddingKernels>().forward({worth_streaming(y), table.dtype(), out, ids.dtype(),
                                              ids.elements(), table.size(0), table.size(1),
                                              ids.raw(), table.raw(), y.mutable_raw()});
  if (tracked({&table_in}))
    record("embedding", {&table_in}, {&y},
           [ids = Saved(ids), from = table.shape(), dtype = table.dtype()](VjpContext& c) {
             c.add(0, backward(ids.get(), c.cotangent(), from, dtype));
           });
  return y;
}

}  // namespace heddle::ops
