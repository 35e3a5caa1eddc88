// sgd on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/sgd/sgd.call.h"
#include "ops/sgd/sgd.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_sgd(ops::SgdCall& c) {
  SgdArgs args;
  args.dtype = c.weight.dtype();
  args.count = c.weight.elements();
  args.lr = c.options.lr;
  args.momentum = c.options.momentum;
  args.weight_decay = c.options.weight_decay;
  args.grad_scale = c.options.grad_scale;
  args.nesterov = c.options.nesterov;
  args.grad = c.grad.raw();
  args.weight = c.weight.mutable_raw();
  args.buffer = raw_or_null(c.buffer);
  kernels<SgdKernels>().step(args);
}

}  // namespace

void add_sgd_routines() { add<ops::SgdCall>({run_sgd}); }

}  // namespace heddle::cpu
