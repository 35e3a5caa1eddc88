// The definition in plain ops.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/loss_rows.h"
#include "ops/linear_cross_entropy/targets.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

// Where the number is 0, 1, and where it is another whole number, 0.
Tensor is_zero(const Tensor& number) { return relu(add(neg(square(number)), 1)); }

// 1 / counted; 0 for 0.
Tensor inverse_or_zero(const Tensor& counted) {
  constexpr double kLeast = 1e-30;
  const Tensor any = add(neg(relu(add(neg(scale(counted, 1 / kLeast)), 1))), 1);
  return div(any, maximum(counted, Tensor::full({}, kLeast, counted.dtype(), counted.device())));
}

Tensor class_numbers(std::int64_t classes, const Tensor& like) {
  std::vector<double> all(static_cast<std::size_t>(classes));
  std::iota(all.begin(), all.end(), 0.0);
  return cast(Tensor::from<double>({classes}, std::span<const double>(all)), like.dtype())
      .to(like.device());
}

// The factor on l[v] of each row and class, like l [T, V]:
//   loss = Σ_v share·l[v]
// Made on l's device without reading the targets, so that the host does not wait for them.
Tensor shares_of_targets(const LossRows& rows, const Tensor& l) {
  const CrossEntropyOptions& o = rows.options;
  const std::int64_t classes = l.size(1);
  if (l.device().is_cpu()) (void)checked_terms(rows, classes);
  const Tensor target = cast(reshape(rows.targets, {l.size(0), 1}), l.dtype());
  const double ignored = static_cast<double>(o.ignore_index);
  const Tensor counts = add(neg(is_zero(add(target, -ignored))), 1);  // [T, 1]
  Tensor hit = mul(is_zero(sub(target, class_numbers(classes, l))), counts);
  const Tensor even =
      scale(counts, o.label_smoothing / static_cast<double>(std::max<std::int64_t>(classes, 1)));
  Tensor share = add(scale(hit, 1 - o.label_smoothing), even);
  if (o.class_weights.defined()) {
    const Tensor weights = cast(o.class_weights.detach(), l.dtype());
    hit = mul(hit, weights);
    share = mul(share, weights);
  }
  return o.reduction == Reduction::mean ? mul(share, inverse_or_zero(sum_all(hit))) : share;
}

// The classes of each row put together, then the rows as the options say. l: [T, V]
Tensor put_together(const LossRows& rows, const Tensor& l, const Shape& shape) {
  const Tensor terms = mul(l, shares_of_targets(rows, l));
  return rows.each() ? reshape(sum(terms, -1), shape) : sum_all(terms);
}

// [T, V] in the type that losses are made in.
Tensor as_loss_rows(const Tensor& x, const Tensor& targets) {
  return cast(reshape(x, {targets.elements(), x.size(-1)}), parameter_dtype(x));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const LossRows rows = checked_loss("cross_entropy", logits, logits.size(-1), targets, options);
  const Tensor z = as_loss_rows(logits, targets);
  const Tensor largest = max(z.detach(), -1, true);  // [T, 1]
  const Tensor lse = add(log(sum(exp(sub(z, largest)), -1, true)), largest);
  return put_together(rows, sub(lse, z), targets.shape());
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets,
                const CrossEntropyOptions& options) {
  const LossRows rows = checked_loss("nll_loss", log_probs, log_probs.size(-1), targets, options);
  return put_together(rows, neg(as_loss_rows(log_probs, targets)), targets.shape());
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  LinearOptions wide;
  wide.wide = true;
  return reference::cross_entropy(reference::linear(x, weight, bias, wide), targets, options);
}

}  // namespace heddle::ops::reference
