// The list of experiments. Each has its file: elman-and is src/lab/elman_and.cpp.
#pragma once

#include <vector>

#include "lab/experiment.h"

namespace heddle::lab {

// In the order of the page.
const std::vector<Experiment>& experiments();

Experiment head_split();
Experiment scale_sqrt_d();
Experiment permutation();
Experiment sinusoid_rotation();
Experiment sinusoid_unique();
Experiment sinusoid_product();
Experiment rope_relative();
Experiment alibi_slopes();
Experiment t5_buckets();
Experiment flash_memory();
Experiment attention_flops();
Experiment patch_conv();
Experiment onehot_embedding();
Experiment layer_vs_batch_norm();
Experiment residual_gradient();

}  // namespace heddle::lab
