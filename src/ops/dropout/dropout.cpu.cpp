// dropout on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/dropout/dropout.call.h"
#include "ops/dropout/dropout.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_dropout(ops::DropoutCall& c) {
  kernels<DropoutKernels>().forward({.dtype = c.x.dtype(),
                                     .stream = worth_streaming(c.y),
                                     .count = c.x.elements(),
                                     .threshold = c.threshold,
                                     .scale = c.scale,
                                     .key = c.key,
                                     .x = c.x.raw(),
                                     .y = c.y.mutable_raw()});
}

}  // namespace

void add_dropout_routines() { add<ops::DropoutCall>({run_dropout}); }

}  // namespace heddle::cpu
