// swiglu on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/support/cpu.h"
#include "ops/swiglu/swiglu.call.h"
#include "ops/swiglu/swiglu.kernels.h"

namespace heddle::cpu {

namespace {

void run_swiglu(ops::SwigluCall& c) {
  const ops::SwigluLayout& l = c.layout;
  kernels<SwigluKernels>().forward({c.y.dtype(), worth_streaming(c.y), l.rows, l.columns, l.in_step,
                                    c.gate.raw(), c.up.raw(), c.y.mutable_raw()});
}

void run_swiglu_backward(ops::SwigluBackwardCall& c) {
  const ops::SwigluLayout& l = c.layout;
  kernels<SwigluKernels>().backward({c.dy.dtype(), worth_streaming(c.dy), l.rows, l.columns,
                                     l.in_step, c.gate.raw(), c.up.raw(), c.dy.raw(),
                                     c.dgate.mutable_raw(), c.dup.mutable_raw()});
}

}  // namespace

void add_swiglu_routines() {
  add<ops::SwigluCall>({run_swiglu});
  add<ops::SwigluBackwardCall>({run_swiglu_backward});
}

}  // namespace heddle::cpu
