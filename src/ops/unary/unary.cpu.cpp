// unary on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/support/cpu.h"
#include "ops/unary/unary.call.h"
#include "ops/unary/unary.kernels.h"

namespace heddle::cpu {

namespace {

void run_unary(ops::UnaryCall& c) {
  kernels<UnaryKernels>().forward({c.kind, c.x.dtype(), worth_streaming(c.y), c.x.elements(),
                                   c.parameter, c.x.raw(), c.y.mutable_raw()});
}

void run_unary_backward(ops::UnaryBackwardCall& c) {
  kernels<UnaryGradientKernels>().backward({c.kind, c.dx.dtype(), worth_streaming(c.dx),
                                            c.dx.elements(), c.parameter, c.saved.raw(), c.dy.raw(),
                                            c.dx.mutable_raw()});
}

}  // namespace

void add_unary_routines() { add<ops::UnaryCall>({run_unary}); }

void add_unary_gradient_routines() { add<ops::UnaryBackwardCall>({run_unary_backward}); }

}  // namespace heddle::cpu
