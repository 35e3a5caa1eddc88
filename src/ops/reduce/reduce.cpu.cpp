// reduce on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/reduce/reduce.call.h"
#include "ops/reduce/reduce.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

// Partial sums, one per block of steps: then the order of additions depends on the shape alone.
void plan_reduce(ops::ReduceCall& c) {
  const ops::ReduceSplit& s = c.split;
  const std::int64_t blocks = reduce_blocks(s.length, s.inner);
  if (blocks > 1) c.partial = workspace({s.outer, blocks, s.inner}, compute_dtype(c.x), c.x);
}

void run_reduce(ops::ReduceCall& c) {
  const ops::ReduceSplit& s = c.split;
  kernels<ReduceKernels>().forward({.kind = c.kind,
                                    .dtype = c.x.dtype(),
                                    .outer = s.outer,
                                    .length = s.length,
                                    .inner = s.inner,
                                    .scale = c.scale,
                                    .x = c.x.raw(),
                                    .partial = raw_or_null(c.partial),
                                    .y = c.y.mutable_raw()});
}

void run_max_backward(ops::MaxBackwardCall& c) {
  const ops::ReduceSplit& s = c.split;
  kernels<ReduceGradientKernels>().max_backward({.dtype = c.x.dtype(),
                                                 .outer = s.outer,
                                                 .length = s.length,
                                                 .inner = s.inner,
                                                 .x = c.x.raw(),
                                                 .y = c.y.raw(),
                                                 .dy = c.dy.raw(),
                                                 .dx = c.dx.mutable_raw()});
}

}  // namespace

void add_reduce_routines() { add<ops::ReduceCall>({run_reduce, plan_reduce}); }

void add_reduce_gradient_routines() { add<ops::MaxBackwardCall>({run_max_backward}); }

}  // namespace heddle::cpu
