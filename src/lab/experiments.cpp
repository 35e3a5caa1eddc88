#include "lab/experiments.h"

namespace heddle::lab {

const std::vector<Experiment>& experiments() {
  // clang-format off: one on a line
  static const std::vector<Experiment> all = {
      elman_and::experiment(),
      birnn_leak::experiment(),
      birnn_prefix::experiment(),
      multiplicative_class::experiment(),
      concat_cosine::experiment(),
      additive_cosine::experiment(),
      attention_symmetry::experiment(),
      scale_sqrt_d::experiment(),
      heads_vs_one::experiment(),
      head_split::experiment(),
      mask_place::experiment(),
      window_mask::experiment(),
      window_cost::experiment(),
      copying::experiment(),
      average_of_two::experiment(),
      single_head_variance::experiment(),
      multi_head_variance::experiment(),
      subspace_projection::experiment(),
      permutation::experiment(),
      sinusoid_rotation::experiment(),
      sinusoid_unique::experiment(),
      sinusoid_product::experiment(),
      rope_relative::experiment(),
      alibi_slopes::experiment(),
      t5_buckets::experiment(),
      length_extrapolation::experiment(),
      flash_memory::experiment(),
      attention_flops::experiment(),
      moe_cost::experiment(),
      kv_cache::experiment(),
      patch_conv::experiment(),
      onehot_embedding::experiment(),
      layer_vs_batch_norm::experiment(),
      residual_gradient::experiment(),
      norm_place::experiment(),
      teacher_forcing::experiment(),
      rnn_vs_attention::experiment(),
  };
  // clang-format on
  return all;
}

}  // namespace heddle::lab
