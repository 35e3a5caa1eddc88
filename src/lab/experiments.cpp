#include "lab/experiments.h"

namespace heddle::lab {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      head_split(),       scale_sqrt_d(),        permutation(),       sinusoid_rotation(),
      sinusoid_unique(),  sinusoid_product(),    rope_relative(),     alibi_slopes(),
      t5_buckets(),       flash_memory(),        attention_flops(),   patch_conv(),
      onehot_embedding(), layer_vs_batch_norm(), residual_gradient(),
  };
  return all;
}

}  // namespace heddle::lab
