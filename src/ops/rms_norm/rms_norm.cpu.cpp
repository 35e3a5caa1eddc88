// rms_norm on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/rms_norm/rms_norm.call.h"
#include "ops/rms_norm/rms_norm.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/norm.cpu_args.h"

namespace heddle::cpu {

namespace {

void run_rms_norm(ops::RmsNormCall& c) { kernels<RmsNormKernels>().forward(norm_args(c)); }

void plan_rms_norm_backward(ops::RmsNormBackwardCall& c) { plan_norm_backward(c); }

void run_rms_norm_backward(ops::RmsNormBackwardCall& c) {
  kernels<RmsNormKernels>().backward(norm_backward_args(c));
}

}  // namespace

void add_rms_norm_routines() {
  add<ops::RmsNormCall>({run_rms_norm});
  add<ops::RmsNormBackwardCall>({run_rms_norm_backward, plan_rms_norm_backward});
}

}  // namespace heddle::cpu
