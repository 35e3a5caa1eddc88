#include "lab/experiments.h"

namespace heddle::lab {

const std::vector<Experiment>& experiments() {
  // clang-format off: one on a line
  static const std::vector<Experiment> all = {
      elman_and(),
      birnn_leak(),
      birnn_prefix(),
      multiplicative_class(),
      concat_cosine(),
      additive_cosine(),
      attention_symmetry(),
      scale_sqrt_d(),
      heads_vs_one(),
      head_split(),
      mask_place(),
      window_mask(),
      window_cost(),
      copying(),
      average_of_two(),
      single_head_variance(),
      multi_head_variance(),
      subspace_projection(),
      permutation(),
      sinusoid_rotation(),
      sinusoid_unique(),
      sinusoid_product(),
      rope_relative(),
      alibi_slopes(),
      t5_buckets(),
      length_extrapolation(),
      flash_memory(),
      attention_flops(),
      moe_cost(),
      kv_cache(),
      patch_conv(),
      onehot_embedding(),
      layer_vs_batch_norm(),
      residual_gradient(),
      norm_place(),
      teacher_forcing(),
      rnn_vs_attention(),
  };
  // clang-format on
  return all;
}

}  // namespace heddle::lab
