// The list of experiments. Each has its file: elman-and is src/lab/elman_and.cpp.
#pragma once

#include <vector>

#include "lab/experiment.h"

namespace heddle::lab {

// In the order of the page.
const std::vector<Experiment>& experiments();

// Recurrent networks
Experiment elman_and();
Experiment birnn_leak();
Experiment birnn_prefix();

// Attention scores
Experiment multiplicative_class();
Experiment concat_cosine();
Experiment additive_cosine();
Experiment attention_symmetry();
Experiment scale_sqrt_d();

// Heads and masks
Experiment heads_vs_one();
Experiment head_split();
Experiment mask_place();

// Sliding windows
Experiment window_mask();
Experiment window_cost();

// What attention can compute
Experiment copying();
Experiment average_of_two();
Experiment single_head_variance();
Experiment multi_head_variance();
Experiment subspace_projection();

// Positions
Experiment permutation();
Experiment sinusoid_rotation();
Experiment sinusoid_unique();
Experiment sinusoid_product();
Experiment rope_relative();
Experiment alibi_slopes();
Experiment t5_buckets();
Experiment length_extrapolation();

// Cost
Experiment flash_memory();
Experiment attention_flops();
Experiment moe_cost();
Experiment kv_cache();

// Building blocks
Experiment patch_conv();
Experiment onehot_embedding();
Experiment layer_vs_batch_norm();
Experiment residual_gradient();

// Training
Experiment norm_place();
Experiment teacher_forcing();
Experiment rnn_vs_attention();

}  // namespace heddle::lab
