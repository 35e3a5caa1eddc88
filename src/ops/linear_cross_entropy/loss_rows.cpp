#include "ops/linear_cross_entropy/loss_rows.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "ops/linear_cross_entropy/targets.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

void check_targets(const char* op, const Tensor& targets, const Tensor& x) {
  check_index({op, "targets", targets});
  Shape rows = x.shape();
  rows.erase(x.rank() - 1);
  check_shape({op, "targets", targets}, rows);
  check_same_device({op, "targets", targets}, x);
}

void check_weights(const char* op, const Tensor& weights, const Tensor& x, std::int64_t classes) {
  check_parameter({op, "class_weights", weights}, x, {classes});
  if (tracked({&weights}))
    fail(ErrorCode::autograd, op, "argument class_weights has no gradient",
         "weights that do not require one, or detach()", weights.describe());
}

// Dense weights as numbers; the meta device has none. Empty: all 1, or unknown.
std::vector<double> weight_values(const char* op, const Tensor& weights) {
  if (!weights.defined() || weights.device() == Device::meta) return {};
  const auto copied = [n = weights.elements()](const auto* from) {
    return std::vector<double>(from, from + n);
  };
  std::vector<double> values = weights.dtype() == DType::f64 ? copied(weights.data<double>())
                                                             : copied(weights.data<float>());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] >= 0 && std::isfinite(values[i])))
      fail(ErrorCode::out_of_range, op, "argument class_weights at position " + std::to_string(i),
           "a finite number, 0 or more", number_text(values[i]));
  return values;
}

// 1 / the weight of the rows that count, or 1; 0 where none counts.
double loss_scale(Reduction reduction, double counted) {
  if (reduction != Reduction::mean) return 1;
  return counted == 0 ? 0 : 1 / counted;
}

}  // namespace

LossRows checked_loss(const char* op, const Tensor& x, std::int64_t classes, const Tensor& targets,
                      const CrossEntropyOptions& options) {
  check_targets(op, targets, x);
  const double s = options.label_smoothing;
  check_number(op, "label_smoothing", s >= 0 && s <= 1, "a number from 0 to 1", s);
  if (options.class_weights.defined()) check_weights(op, options.class_weights, x, classes);
  LossRows rows;
  rows.targets = views::reshape(dense(targets), {targets.elements()});
  rows.options = options;
  rows.options.class_weights = dense_or_none(options.class_weights);
  const std::vector<double> weights = weight_values(op, rows.options.class_weights);
  rows.class_weight_sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const Classes all{classes, options.ignore_index, weights.empty() ? nullptr : weights.data()};
  rows.scale = loss_scale(options.reduction, counted_weight(op, rows.targets, all));
  return rows;
}

cpu::CrossEntropyArgs row_args(const LossRows& rows, const Tensor& logits, std::int64_t begin,
                               std::int64_t end) {
  const CrossEntropyOptions& o = rows.options;
  cpu::CrossEntropyArgs args;
  args.logits_dtype = args.gradient_dtype = logits.dtype();
  args.target_dtype = rows.targets.dtype();
  args.classes = logits.shape().back();
  args.rows = end - begin;
  args.ignore_index = o.ignore_index;
  args.smoothing = o.label_smoothing;
  args.logits = logits.raw();
  args.targets = views::slice(rows.targets, 0, begin, end).raw();
  args.class_weights = raw_or_null(o.class_weights);
  args.class_weight_sum = rows.class_weight_sum;
  args.scale = rows.scale;
  return args;
}

void write_loss(Tensor& loss, const Tensor& losses, double scale) {
  const auto sum = [n = losses.elements()](const auto* values) {
    return std::accumulate(values, values + n, 0.0);
  };
  if (losses.dtype() == DType::f64)
    *loss.mutable_data<double>() = sum(losses.data<double>()) * scale;
  else
    *loss.mutable_data<float>() = static_cast<float>(sum(losses.data<float>()) * scale);
}

}  // namespace heddle::ops
