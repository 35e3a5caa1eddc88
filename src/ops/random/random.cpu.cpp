// random on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/random/random.call.h"
#include "ops/random/random.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_random(ops::RandomCall& c) {
  const RandomKernels& table = kernels<RandomKernels>();
  (c.normal ? table.normal : table.uniform)(
      {c.y.dtype(), c.y.elements(), c.offset, c.factor, c.key, c.y.mutable_raw()});
}

}  // namespace

void add_random_routines() { add<ops::RandomCall>({run_random}); }

}  // namespace heddle::cpu
