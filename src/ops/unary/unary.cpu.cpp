// unary on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/support/cpu.h"
#include "ops/unary/unary.call.h"
#include "ops/unary/unary.kernels.h"

namespace heddle::cpu {

namespace {

void run_unary(ops::UnaryCall& c) {
  kernels<UnaryKernels>().forward({.kind = c.kind,
                                   .dtype = c.x.dtype(),
                                   .stream = worth_streaming(c.y),
                                   .count = c.x.elements(),
                                   .parameter = c.parameter,
                                   .x = c.x.raw(),
                                   .y = c.y.mutable_raw()});
}

void run_unary_backward(ops::UnaryBackwardCall& c) {
  kernels<UnaryGradientKernels>().backward({.kind = c.kind,
                                            .dtype = c.dx.dtype(),
                                            .stream = worth_streaming(c.dx),
                                            .count = c.dx.elements(),
                                            .parameter = c.parameter,
                                            .x = c.saved.raw(),
                                            .dy = c.dy.raw(),
                                            .dx = c.dx.mutable_raw()});
}

}  // namespace

void add_unary_routines() { add<ops::UnaryCall>({run_unary}); }

void add_unary_gradient_routines() { add<ops::UnaryBackwardCall>({run_unary_backward}); }

}  // namespace heddle::cpu
