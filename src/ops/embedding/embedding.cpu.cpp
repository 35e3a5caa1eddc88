// embedding on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/embedding/embedding.call.h"
#include "ops/embedding/embedding.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_embedding(ops::EmbeddingCall& c) {
  kernels<EmbeddingKernels>().forward(
      {worth_streaming(c.y), c.table.dtype(), c.y.dtype(), c.ids.dtype(), c.ids.elements(),
       c.table.size(0), c.table.size(1), c.ids.raw(), c.table.raw(), c.y.mutable_raw()});
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
  kernels<EmbeddingKernels>().backward(args);
}

}  // namespace

void add_embedding_routines() {
  add<ops::EmbeddingCall>({run_embedding});
  add<ops::EmbeddingBackwardCall>({run_embedding_backward, plan_embedding_backward});
}

}  // namespace heddle::cpu
