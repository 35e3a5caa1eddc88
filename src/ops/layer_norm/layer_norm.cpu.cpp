// layer_norm on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/layer_norm/layer_norm.call.h"
#include "ops/layer_norm/layer_norm.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/norm.cpu_args.h"

namespace heddle::cpu {

namespace {

void run_layer_norm(ops::LayerNormCall& c) { kernels<LayerNormKernels>().forward(norm_args(c)); }

void plan_layer_norm_backward(ops::LayerNormBackwardCall& c) { plan_norm_backward(c); }

void run_layer_norm_backward(ops::LayerNormBackwardCall& c) {
  kernels<LayerNormKernels>().backward(norm_backward_args(c));
}

}  // namespace

void add_layer_norm_routines() {
  add<ops::LayerNormCall>({run_layer_norm});
  add<ops::LayerNormBackwardCall>({run_layer_norm_backward, plan_layer_norm_backward});
}

}  // namespace heddle::cpu
