// dropout on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/dropout/dropout.call.h"
#include "ops/dropout/dropout.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_dropout(ops::DropoutCall& c) {
  kernels<DropoutKernels>().forward({c.x.dtype(), worth_streaming(c.y), c.x.elements(), c.threshold,
                                     c.scale, c.key, c.x.raw(), c.y.mutable_raw()});
}

}  // namespace

void add_dropout_routines() { add<ops::DropoutCall>({run_dropout}); }

}  // namespace heddle::cpu
