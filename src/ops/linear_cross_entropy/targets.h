// Class numbers and weights as they come from outside, where the host can look at them.
#pragma once

#include <cstdint>

#include "ops/linear_cross_entropy/loss_rows.h"

namespace heddle::ops {

// Weights of the rows.
struct LossTerms {
  double class_weight_sum = 0;  // of the class weights, where there are any
  double scale = 1;  // what the sum of the rows' losses is multiplied with; 0 where none counts
};

// Targets on the CPU: throws Error naming position and value of the first one outside of [0,
// classes) that is not ignored.
void check_target_values(const LossRows& rows, std::int64_t classes);

// Of rows on the CPU. The weights of the targets that are not ignored are added up in order. Throws
// Error as check_target_values() does, or for a class weight that is negative or not finite.
LossTerms checked_terms(const LossRows& rows, std::int64_t classes);

}  // namespace heddle::ops
