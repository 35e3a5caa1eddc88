// The definition in plain ops.
#include <span>
#include <vector>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/targets.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

// What is multiplied with l[v] of each row and class [T, V]:
//   loss = Σ_v share·l[v]
Tensor shares_of_targets(const Tensor& targets, std::int64_t classes,
                         const CrossEntropyOptions& options) {
  const std::vector<std::int64_t> t = target_values(targets);
  std::vector<double> weights(static_cast<std::size_t>(classes), 1);
  if (options.class_weights.defined())
    weights = contiguous(options.class_weights.detach()).to_vector<double>();
  double counted = 0;
  for (const std::int64_t v : t)
    counted += v != options.ignore_index ? weights[static_cast<std::size_t>(v)] : 0;
  const bool mean = options.reduction == Reduction::mean;
  const double scale = !mean ? 1 : counted > 0 ? 1 / counted : 0;
  const double even = options.label_smoothing / static_cast<double>(classes);
  std::vector<double> out;
  for (const std::int64_t target : t)
    for (std::int64_t v = 0; v < classes; ++v) {
      const double share = (v == target ? 1 - options.label_smoothing : 0) + even;
      const bool counts = target != options.ignore_index;
      out.push_back(counts ? scale * share * weights[static_cast<std::size_t>(v)] : 0);
    }
  return Tensor::from<double>({static_cast<std::int64_t>(t.size()), classes},
                              std::span<const double>(out));
}

// The classes of each row put together, then the rows as the options say. l: [T, V]
Tensor put_together(const Tensor& l, const Tensor& targets, const CrossEntropyOptions& options) {
  const Tensor terms = mul(l, shares_of_targets(targets, l.size(1), options));
  if (options.reduction == Reduction::none) return reshape(sum(terms, -1), targets.shape());
  return sum_all(terms);
}

}  // namespace

// Runs in f64 only.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const std::int64_t classes = logits.size(-1);
  const Tensor z = reshape(logits, {targets.elements(), classes});  // [T, V]
  const Tensor largest = max(z.detach(), -1, true);                 // [T, 1]
  const Tensor lse = add(log(sum(exp(sub(z, largest)), -1, true)), largest);
  return put_together(sub(lse, z), targets, options);
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets,
                const CrossEntropyOptions& options) {
  const Tensor rows = reshape(log_probs, {targets.elements(), log_probs.size(-1)});
  return put_together(neg(rows), targets, options);
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  return reference::cross_entropy(reference::linear(x, weight, bias, {}), targets, options);
}

}  // namespace heddle::ops::reference
