// The definition in plain ops.
#include "ops/binary/binary.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/targets.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

// The weight of each row's log-sum-exp [T, 1], and of each logit [T, V]:
//   loss = Σ_rows row·lse - Σ logit·z
struct Weights {
  Tensor row, logit;
};

Weights target_weights(const Tensor& targets, std::int64_t classes,
                       const CrossEntropyOptions& options) {
  const std::vector<std::int64_t> t = target_values(targets);
  const auto rows = static_cast<std::int64_t>(t.size());
  std::int64_t counted = 0;
  for (const std::int64_t v : t) counted += v != options.ignore_index ? 1 : 0;
  const bool mean = options.reduction == Reduction::mean && counted > 0;
  const double share = mean ? 1 / static_cast<double>(counted) : 1;
  Weights w{Tensor::zeros({rows, 1}, DType::f64), Tensor::zeros({rows, classes}, DType::f64)};
  double* row = w.row.mutable_data<double>();
  double* logit = w.logit.mutable_data<double>();
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t target = t[static_cast<std::size_t>(r)];
    if (target == options.ignore_index) continue;
    row[r] = share;
    for (std::int64_t v = 0; v < classes; ++v)
      logit[r * classes + v] = share * options.label_smoothing / static_cast<double>(classes);
    logit[r * classes + target] += share * (1 - options.label_smoothing);
  }
  return w;
}

}  // namespace

// Runs in f64 only.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const std::int64_t classes = logits.size(-1);
  const Tensor z = reshape(logits, {targets.elements(), classes});  // [T, V]
  const Weights w = target_weights(targets, classes, options);
  const Tensor largest = max(z.detach(), -1, true);  // [T, 1]
  const Tensor lse = add(log(sum(exp(sub(z, largest)), -1, true)), largest);
  return sub(sum_all(mul(w.row, lse)), sum_all(mul(w.logit, z)));
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options) {
  return reference::cross_entropy(reference::linear(x, weight, bias, {}), targets, options);
}

}  // namespace heddle::ops::reference
