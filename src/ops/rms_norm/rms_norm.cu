// rms_norm on CUDA.
#include "ops/rms_norm/rms_norm.call.h"
#include "ops/support/norm.cuh"

namespace heddle::cuda {

namespace {

void run_rms_norm(ops::RmsNormCall& c) { norm::forward<false>(c); }
void plan_rms_norm_backward(ops::RmsNormBackwardCall& c) { norm::plan_backward(c); }
void run_rms_norm_backward(ops::RmsNormBackwardCall& c) { norm::backward<false>(c); }

}  // namespace

void add_rms_norm_routines() {
  add<ops::RmsNormCall>({run_rms_norm});
  add<ops::RmsNormBackwardCall>({run_rms_norm_backward, plan_rms_norm_backward});
}

}  // namespace heddle::cuda
