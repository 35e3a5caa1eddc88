// embedding on the CPU.
#include <numeric>

#include "backend/cpu/kernels.h"
#include "ops/embedding/embedding.call.h"
#include "ops/embedding/embedding.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/packed_weight.h"

namespace heddle::cpu {

namespace {

// y[i, :] = table[ids[i], :]
void run_rows(const Tensor& table, const Tensor& ids, Tensor& y) {
  kernels<EmbeddingKernels>().forward({.stream = worth_streaming(y),
                                       .table_dtype = table.dtype(),
                                       .out_dtype = y.dtype(),
                                       .id_dtype = ids.dtype(),
                                       .count = ids.elements(),
                                       .rows = table.size(0),
                                       .width = table.size(1),
                                       .ids = ids.raw(),
                                       .table = table.raw(),
                                       .y = y.mutable_raw()});
}

// A table that is a classifier's weight as well may be held as that alone.
void plan_embedding(ops::EmbeddingCall& c) {
  if (packed_rows(c.table).form == nullptr) return;
  const std::int64_t count = c.ids.elements();
  c.rows = workspace({count, c.table.size(1)}, c.table.dtype(), c.y);
  c.numbers = workspace({count}, DType::i64, c.y);
}

void run_embedding(ops::EmbeddingCall& c) {
  if (!c.rows.defined()) return run_rows(c.table, c.ids, c.y);
  packed_rows(c.table).copy(c.ids, c.rows);
  auto* number = c.numbers.mutable_data<std::int64_t>();
  std::iota(number, number + c.ids.elements(), 0);
  run_rows(c.rows, c.numbers, c.y);
}

// The places of each row, in their order: then every row is summed by one thread.
void plan_embedding_backward(ops::EmbeddingBackwardCall& c) {
  c.starts = workspace({c.dtable.size(0) + 2}, DType::i64, c.dy);
  c.order = workspace({c.ids.elements()}, DType::i64, c.dy);
}

void run_embedding_backward(ops::EmbeddingBackwardCall& c) {
  EmbeddingBackwardArgs args;
  args.add = c.add;
  args.table_dtype = c.dtable.dtype();
  args.out_dtype = c.dy.dtype();
  args.id_dtype = c.ids.dtype();
  args.count = c.ids.elements();
  args.rows = c.dtable.size(0);
  args.width = c.dtable.size(1);
  args.ids = c.ids.raw();
  args.dy = c.dy.raw();
  args.dtable = c.dtable.mutable_raw();
  args.starts = c.starts.mutable_data<std::int64_t>();
  args.order = c.order.mutable_data<std::int64_t>();
  kernels<EmbeddingGradientKernels>().backward(args);
}

}  // namespace

void add_embedding_routines() { add<ops::EmbeddingCall>({run_embedding, plan_embedding}); }

void add_embedding_gradient_routines() {
  add<ops::EmbeddingBackwardCall>({run_embedding_backward, plan_embedding_backward});
}

}  // namespace heddle::cpu
