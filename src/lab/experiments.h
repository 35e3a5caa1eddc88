// The list of experiments. Each has its file in the folder of its topic: elman-and is
// src/lab/recurrent/elman_and.cpp.
#pragma once

#include <vector>

#include "lab/experiment.h"

namespace heddle::lab {

// In the order of the page.
const std::vector<Experiment>& experiments();

// A namespace each, so that they need not ask each other for names.
// clang-format off: one on a line
// Recurrent networks
namespace elman_and { Experiment experiment(); }
namespace birnn_leak { Experiment experiment(); }
namespace birnn_prefix { Experiment experiment(); }

// Attention scores
namespace multiplicative_class { Experiment experiment(); }
namespace concat_cosine { Experiment experiment(); }
namespace additive_cosine { Experiment experiment(); }
namespace attention_symmetry { Experiment experiment(); }
namespace scale_sqrt_d { Experiment experiment(); }

// Heads and masks
namespace heads_vs_one { Experiment experiment(); }
namespace head_split { Experiment experiment(); }
namespace mask_place { Experiment experiment(); }

// Sliding windows
namespace window_mask { Experiment experiment(); }
namespace window_cost { Experiment experiment(); }

// What attention can compute
namespace copying { Experiment experiment(); }
namespace average_of_two { Experiment experiment(); }
namespace single_head_variance { Experiment experiment(); }
namespace multi_head_variance { Experiment experiment(); }
namespace subspace_projection { Experiment experiment(); }

// Positions
namespace permutation { Experiment experiment(); }
namespace sinusoid_rotation { Experiment experiment(); }
namespace sinusoid_unique { Experiment experiment(); }
namespace sinusoid_product { Experiment experiment(); }
namespace rope_relative { Experiment experiment(); }
namespace alibi_slopes { Experiment experiment(); }
namespace t5_buckets { Experiment experiment(); }
namespace length_extrapolation { Experiment experiment(); }

// Cost
namespace flash_memory { Experiment experiment(); }
namespace attention_flops { Experiment experiment(); }
namespace moe_cost { Experiment experiment(); }
namespace kv_cache { Experiment experiment(); }

// Building blocks
namespace patch_conv { Experiment experiment(); }
namespace onehot_embedding { Experiment experiment(); }
namespace layer_vs_batch_norm { Experiment experiment(); }
namespace residual_gradient { Experiment experiment(); }

// Training
namespace norm_place { Experiment experiment(); }
namespace teacher_forcing { Experiment experiment(); }
namespace rnn_vs_attention { Experiment experiment(); }
// clang-format on

}  // namespace heddle::lab
