// softmax on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/softmax/softmax.call.h"
#include "ops/softmax/softmax.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_softmax(ops::SoftmaxCall& c) {
  check_f64("softmax", c.x.dtype());
  kernels<SoftmaxKernels>().forward({c.x.dtype(), c.logarithm, worth_streaming(c.y), rows_of(c.x),
                                     c.x.shape().back(), c.x.raw(), c.y.mutable_raw()});
}

void run_softmax_backward(ops::SoftmaxBackwardCall& c) {
  kernels<SoftmaxGradientKernels>().backward({c.y.dtype(), c.logarithm, worth_streaming(c.dx),
                                              rows_of(c.y), c.y.shape().back(), c.y.raw(),
                                              c.dy.raw(), c.dx.mutable_raw()});
}

}  // namespace

void add_softmax_routines() { add<ops::SoftmaxCall>({run_softmax}); }

void add_softmax_gradient_routines() { add<ops::SoftmaxBackwardCall>({run_softmax_backward}); }

}  // namespace heddle::cpu
