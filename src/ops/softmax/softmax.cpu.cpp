// softmax on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/softmax/softmax.call.h"
#include "ops/softmax/softmax.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_softmax(ops::SoftmaxCall& c) {
  check_f64("softmax", c.x.dtype());
  kernels<SoftmaxKernels>().forward({.dtype = c.x.dtype(),
                                     .logarithm = c.logarithm,
                                     .stream = worth_streaming(c.y),
                                     .rows = rows_of(c.x),
                                     .columns = c.x.shape().back(),
                                     .x = c.x.raw(),
                                     .y = c.y.mutable_raw()});
}

void run_softmax_backward(ops::SoftmaxBackwardCall& c) {
  kernels<SoftmaxGradientKernels>().backward({.dtype = c.y.dtype(),
                                              .logarithm = c.logarithm,
                                              .stream = worth_streaming(c.dx),
                                              .rows = rows_of(c.y),
                                              .columns = c.y.shape().back(),
                                              .y = c.y.raw(),
                                              .dy = c.dy.raw(),
                                              .dx = c.dx.mutable_raw()});
}

}  // namespace

void add_softmax_routines() { add<ops::SoftmaxCall>({run_softmax}); }

void add_softmax_gradient_routines() { add<ops::SoftmaxBackwardCall>({run_softmax_backward}); }

}  // namespace heddle::cpu
