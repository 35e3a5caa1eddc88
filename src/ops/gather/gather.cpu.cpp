// gather on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/gather/gather.call.h"
#include "ops/gather/gather.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

std::int64_t width_of_rows(const Shape& shape) {
  std::int64_t width = 1;
  for (int i = 1; i < shape.rank(); ++i) width *= shape[i];
  return width;
}

void run_gather(ops::GatherCall& c) {
  kernels<GatherKernels>().gather({.dtype = c.x.dtype(),
                                   .index_dtype = c.ids.dtype(),
                                   .shape = c.ids.shape(),
                                   .strides = c.x.strides(),
                                   .dim = c.dim,
                                   .index = c.ids.raw(),
                                   .x = c.x.raw(),
                                   .y = c.y.mutable_raw()});
}

void run_scatter_add(ops::ScatterAddCall& c) {
  kernels<GatherKernels>().scatter_add({.dtype = c.source.dtype(),
                                        .index_dtype = c.ids.dtype(),
                                        .shape = c.ids.shape(),
                                        .strides = c.sum.strides(),
                                        .dim = c.dim,
                                        .index = c.ids.raw(),
                                        .source = c.source.raw(),
                                        .sum = c.sum.mutable_raw()});
}

void run_index_select(ops::IndexSelectCall& c) {
  kernels<GatherKernels>().index_select({.stream = worth_streaming(c.y),
                                         .dtype = c.x.dtype(),
                                         .index_dtype = c.ids.dtype(),
                                         .count = c.ids.elements(),
                                         .width = width_of_rows(c.y.shape()),
                                         .index = c.ids.raw(),
                                         .x = c.x.raw(),
                                         .y = c.y.mutable_raw()});
}

void plan_index_add(ops::IndexAddCall& c) {
  c.starts = workspace({c.y.size(0) + 2}, DType::i64, c.y);
  c.order = workspace({c.ids.elements()}, DType::i64, c.y);
}

void run_index_add(ops::IndexAddCall& c) {
  IndexAddArgs args;
  args.dtype = c.y.dtype();
  args.index_dtype = c.ids.dtype();
  args.count = c.ids.elements();
  args.rows = c.y.size(0);
  args.width = width_of_rows(c.y.shape());
  args.index = c.ids.raw();
  args.x = raw_or_null(c.x);
  args.source = c.source.raw();
  args.y = c.y.mutable_raw();
  args.starts = c.starts.mutable_data<std::int64_t>();
  args.order = c.order.mutable_data<std::int64_t>();
  kernels<GatherKernels>().index_add(args);
}

}  // namespace

void add_gather_routines() {
  add<ops::GatherCall>({run_gather});
  add<ops::ScatterAddCall>({run_scatter_add});
  add<ops::IndexSelectCall>({run_index_select});
  add<ops::IndexAddCall>({run_index_add, plan_index_add});
}

}  // namespace heddle::cpu
