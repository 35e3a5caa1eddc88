// glu on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/glu/glu.call.h"
#include "ops/glu/glu.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_glu(ops::GluCall& c) {
  check_f64("glu", c.y.dtype());
  const ops::GluLayout& l = c.layout;
  kernels<GluKernels>().forward({.dtype = c.y.dtype(),
                                 .stream = worth_streaming(c.y),
                                 .rows = l.rows,
                                 .columns = l.columns,
                                 .in_step = l.in_step,
                                 .gate = c.gate.raw(),
                                 .up = c.up.raw(),
                                 .y = c.y.mutable_raw(),
                                 .kind = c.options.gate,
                                 .limit = c.options.limit});
}

void run_glu_backward(ops::GluBackwardCall& c) {
  const ops::GluLayout& l = c.layout;
  kernels<GluGradientKernels>().backward({.dtype = c.dy.dtype(),
                                          .stream = worth_streaming(c.dy),
                                          .rows = l.rows,
                                          .columns = l.columns,
                                          .in_step = l.in_step,
                                          .gate = c.gate.raw(),
                                          .up = c.up.raw(),
                                          .dy = c.dy.raw(),
                                          .dgate = c.dgate.mutable_raw(),
                                          .dup = c.dup.mutable_raw(),
                                          .kind = c.options.gate,
                                          .limit = c.options.limit});
}

}  // namespace

void add_glu_routines() { add<ops::GluCall>({run_glu}); }

void add_glu_gradient_routines() { add<ops::GluBackwardCall>({run_glu_backward}); }

}  // namespace heddle::cpu
