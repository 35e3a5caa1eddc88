#include "ops/random/random.h"

#include "ops/random/random.call.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

Tensor drawn(const char* op, const Shape& shape, DType dtype, Device device) {
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f64)
    fail(ErrorCode::dtype_mismatch, op, "argument dtype", "f32, bf16 or f64", to_string(dtype));
  return Tensor::empty(shape, dtype, device);
}

void check_finite(const char* op, const char* name, double value) {
  check_number(op, name, true, "a finite number", value);
}

}  // namespace

Tensor random_uniform(const Shape& shape, double low, double high, const RandomKey& key,
                      DType dtype, Device device) {
  check_finite("random_uniform", "low", low);
  check_finite("random_uniform", "high", high);
  check_condition(low <= high, "random_uniform", "high", "at least low, " + std::to_string(low),
                  std::to_string(high));
  Tensor y = drawn("random_uniform", shape, dtype, device);
  launch(RandomCall{.normal = false, .offset = low, .factor = high - low, .key = key, .y = y});
  return y;
}

Tensor random_normal(const Shape& shape, double mean, double stddev, const RandomKey& key,
                     DType dtype, Device device) {
  check_finite("random_normal", "mean", mean);
  check_number("random_normal", "stddev", stddev >= 0, "a finite number, 0 or more", stddev);
  Tensor y = drawn("random_normal", shape, dtype, device);
  launch(RandomCall{.normal = true, .offset = mean, .factor = stddev, .key = key, .y = y});
  return y;
}

}  // namespace heddle::ops
