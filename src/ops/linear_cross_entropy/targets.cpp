#include "ops/linear_cross_entropy/targets.h"

#include <string>

namespace heddle::ops {

namespace {

template <class T>
std::int64_t count(const char* op, const Tensor& targets, std::int64_t classes,
                   std::int64_t ignore) {
  const T* values = targets.data<T>();
  const std::int64_t elements = targets.elements();
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::int64_t v = values[i];
    if (v == ignore) continue;
    if (v < 0 || v >= classes)
      fail(ErrorCode::out_of_range, op, "argument targets at position " + std::to_string(i),
           "a class from 0 to " + std::to_string(classes - 1) + ", or " + std::to_string(ignore) +
               " to ignore the row",
           std::to_string(v));
    ++counted;
  }
  return counted;
}

}  // namespace

std::vector<std::int64_t> target_values(const Tensor& targets) {
  if (targets.dtype() == DType::i64) return targets.to_vector<std::int64_t>();
  const std::vector<std::int32_t> narrow = targets.to_vector<std::int32_t>();
  return {narrow.begin(), narrow.end()};
}

std::int64_t count_targets(const char* op, const Tensor& targets, std::int64_t classes,
                           std::int64_t ignore) {
  if (targets.device() == Device::meta) return targets.elements();
  return targets.dtype() == DType::i32 ? count<std::int32_t>(op, targets, classes, ignore)
                                       : count<std::int64_t>(op, targets, classes, ignore);
}

}  // namespace heddle::ops
