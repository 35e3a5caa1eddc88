#include "ops/linear_cross_entropy/targets.h"

#include <string>

namespace heddle::ops {

namespace {

template <class T>
double added_up(const char* op, const Tensor& targets, const Classes& classes) {
  const T* values = targets.data<T>();
  const std::int64_t elements = targets.elements();
  double sum = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::int64_t v = values[i];
    if (v == classes.ignore) continue;
    if (v < 0 || v >= classes.count)
      fail(ErrorCode::out_of_range, op, "argument targets at position " + std::to_string(i),
           "a class from 0 to " + std::to_string(classes.count - 1) + ", or " +
               std::to_string(classes.ignore) + " to ignore the row",
           std::to_string(v));
    sum += classes.weights == nullptr ? 1 : classes.weights[v];
  }
  return sum;
}

}  // namespace

std::vector<std::int64_t> target_values(const Tensor& targets) {
  if (targets.dtype() == DType::i64) return targets.to_vector<std::int64_t>();
  const std::vector<std::int32_t> narrow = targets.to_vector<std::int32_t>();
  return {narrow.begin(), narrow.end()};
}

double counted_weight(const char* op, const Tensor& targets, const Classes& classes) {
  if (targets.device() == Device::meta) return static_cast<double>(targets.elements());
  return targets.dtype() == DType::i32 ? added_up<std::int32_t>(op, targets, classes)
                                       : added_up<std::int64_t>(op, targets, classes);
}

}  // namespace heddle::ops
