#include "ops/embedding/embedding.h"

#include "ops/copy/copy.h"
#include "ops/embedding/embedding.call.h"
#include "ops/gather/gather.h"
#include "ops/support/index.h"
#include "ops/support/op.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

void check_out(const Tensor& table, DType out) {
  const bool wide = table.dtype() == DType::f64;
  const bool ok = wide ? out == DType::f64 : out == DType::f32 || out == DType::bf16;
  if (!ok)
    fail(ErrorCode::dtype_mismatch, "embedding", "argument out",
         wide ? "f64 from a table in f64" : "f32, bf16 or f16 from a table in f32 or bf16",
         to_string(out));
}

// The shape and type of a table.
struct TableKind {
  Shape shape;  // [V, C]
  DType dtype = DType::f32;
};

// dtable[r, c] = Σ over i with ids[i] = r of dy[i, c]
//
// A table that is the classifier's weight as well has a gradient already, with all of its rows: the
// few that ids name are added to it in place, instead of a second table of mostly zeros.
Tensor backward(const Tensor& ids, const Tensor& cotangent, const TableKind& table, Tensor sum) {
  const Tensor dy = dense(cotangent);  // [..., C]
  const bool add = sum.defined();
  Tensor dtable = add ? std::move(sum) : Tensor::empty(table.shape, table.dtype, dy.device());
  launch(EmbeddingBackwardCall{add, ids, dy, dtable});
  return dtable;
}

}  // namespace

Tensor embedding(const Tensor& table_in, const Tensor& ids_in, DType out) {
  if (out == DType::f16) return to_half(embedding(table_in, ids_in, DType::f32));
  check_compute({"embedding", "table", table_in});
  check_rank({"embedding", "table", table_in}, 2);
  check_out(table_in, out);
  const Tensor table = dense(table_in);  // [V, C]
  const Tensor ids = entered({"embedding", "ids", ids_in}, table.size(0), table);
  if (!has_routine<EmbeddingCall>(table)) return reference::embedding(table_in, ids, out);
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  Tensor y = Tensor::empty(shape, out, table.device());  // [..., C]
  launch(EmbeddingCall{table, ids, y});
  if (tracked({&table_in}))
    record("embedding", {&table_in}, {&y},
           [ids = Saved(ids), kind = TableKind{table.shape(), table.dtype()}](VjpContext& c) {
             c.add(0, backward(ids.get(), c.cotangent(), kind, c.take_sum(0)));
           });
  return y;
}

namespace reference {

Tensor embedding(const Tensor& table, const Tensor& ids, DType out) {
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  return cast(reshape(index_select(table, reshape(ids, {ids.elements()})), shape), out);
}

}  // namespace reference
}  // namespace heddle::ops
