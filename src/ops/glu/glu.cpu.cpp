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
  kernels<GluKernels>().forward({c.y.dtype(), worth_streaming(c.y), l.rows, l.columns, l.in_step,
                                 c.gate.raw(), c.up.raw(), c.y.mutable_raw(), c.options.gate,
                                 c.options.limit});
}

void run_glu_backward(ops::GluBackwardCall& c) {
  const ops::GluLayout& l = c.layout;
  kernels<GluGradientKernels>().backward(
      {c.dy.dtype(), worth_streaming(c.dy), l.rows, l.columns, l.in_step, c.gate.raw(), c.up.raw(),
       c.dy.raw(), c.dgate.mutable_raw(), c.dup.mutable_raw(), c.options.gate, c.options.limit});
}

}  // namespace

void add_glu_routines() { add<ops::GluCall>({run_glu}); }

void add_glu_gradient_routines() { add<ops::GluBackwardCall>({run_glu_backward}); }

}  // namespace heddle::cpu
