// The rows of losses as the CPU's kernels take them.
#pragma once

#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"
#include "ops/linear_cross_entropy/loss_rows.h"
#include "ops/linear_cross_entropy/targets.h"

namespace heddle::cpu {

// Of the rows [begin, end), whose logits are given.
CrossEntropyArgs row_args(const ops::LossRows& rows, const ops::LossTerms& terms,
                          const Tensor& logits, std::int64_t begin, std::int64_t end);

// The sum of the rows' losses times their scale, in float64 and in order.
void write_loss(Tensor& loss, const Tensor& losses, double scale);

}  // namespace heddle::cpu
