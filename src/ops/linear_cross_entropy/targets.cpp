#include "ops/linear_cross_entropy/targets.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/number_text.h"

namespace heddle::ops {

namespace {

std::vector<double> weight_values(const char* op, const Tensor& weights) {
  if (!weights.defined()) return {};
  std::vector<double> values;
  if (weights.dtype() == DType::f64) {
    values = weights.to_vector<double>();
  } else {
    const std::vector<float> narrow = weights.to_vector<float>();
    values.assign(narrow.begin(), narrow.end());
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] >= 0 && std::isfinite(values[i])))
      fail(ErrorCode::out_of_range, op, "argument class_weights at position " + std::to_string(i),
           "a finite number, 0 or more", number_text(values[i]));
  return values;
}

// The weights of the targets that are not ignored: without weights, their number.
template <class T>
double counted_weight(const LossRows& rows, std::int64_t classes,
                      const std::vector<double>& weights) {
  const std::int64_t ignore = rows.options.ignore_index, count = rows.targets.elements();
  const T* targets = rows.targets.data<T>();
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t v = targets[i];
    if (v == ignore) continue;
    if (v < 0 || v >= classes)
      fail(ErrorCode::out_of_range, rows.op, "argument targets at position " + std::to_string(i),
           "a class from 0 to " + std::to_string(classes - 1) + ", or " + std::to_string(ignore) +
               " to ignore the row",
           std::to_string(v));
    sum += weights.empty() ? 1 : weights[static_cast<std::size_t>(v)];
  }
  return sum;
}

double counted_weight(const LossRows& rows, std::int64_t classes,
                      const std::vector<double>& weights) {
  return rows.targets.dtype() == DType::i32 ? counted_weight<std::int32_t>(rows, classes, weights)
                                            : counted_weight<std::int64_t>(rows, classes, weights);
}

}  // namespace

void check_target_values(const LossRows& rows, std::int64_t classes) {
  counted_weight(rows, classes, {});
}

LossTerms checked_terms(const LossRows& rows, std::int64_t classes) {
  const std::vector<double> weights = weight_values(rows.op, rows.options.class_weights);
  const double counted = counted_weight(rows, classes, weights);
  LossTerms terms;
  terms.class_weight_sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (rows.options.reduction == Reduction::mean) terms.scale = counted == 0 ? 0 : 1 / counted;
  return terms;
}

}  // namespace heddle::ops
