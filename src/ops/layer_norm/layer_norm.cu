// layer_norm on CUDA.
#include "ops/layer_norm/layer_norm.call.h"
#include "ops/support/norm.cuh"

namespace heddle::cuda {

namespace {

void run_layer_norm(ops::LayerNormCall& c) { norm::forward<true>(c); }
void plan_layer_norm_backward(ops::LayerNormBackwardCall& c) { norm::plan_backward(c); }
void run_layer_norm_backward(ops::LayerNormBackwardCall& c) { norm::backward<true>(c); }

}  // namespace

void add_layer_norm_routines() {
  add<ops::LayerNormCall>({run_layer_norm});
  add<ops::LayerNormBackwardCall>({run_layer_norm_backward, plan_layer_norm_backward});
}

}  // namespace heddle::cuda
