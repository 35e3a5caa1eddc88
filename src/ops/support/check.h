// One-line argument checks of ops. Each throws Error naming op, argument, expected and got.
#pragma once

#include <string_view>

#include "heddle/tensor.h"

namespace heddle::ops {

// An argument as it appears in an error message.
struct Arg {
  const char* op;
  const char* name;
  const Tensor& tensor;
};

void check_defined(const Arg& a);
// f32, bf16 or f64: what kernels compute on. Ops that take f16 widen it before (ops/copy/copy.h).
void check_compute(const Arg& a);
void check_dtype(const Arg& a, DType wanted);
void check_index(const Arg& a);  // i32 or i64
void check_shape(const Arg& a, const Shape& wanted);
void check_rank(const Arg& a, int wanted);
void check_rank_at_least(const Arg& a, int wanted);
void check_same_device(const Arg& a, const Tensor& other);
void check_condition(bool ok, const char* op, const char* name, std::string_view expected,
                     std::string_view got);
// A setting that is finite and `ok`.
void check_number(const char* op, const char* name, bool ok, std::string_view expected, double got);

// Weights for activations x: f32 when x is f32 or bf16, f64 when x is f64; on x's device.
DType parameter_dtype(const Tensor& x);
void check_parameter(const Arg& a, const Tensor& x, const Shape& wanted);

// x is compute-typed; y has the same type, shape and device (for pairs of activations).
void check_like(const Arg& y, const Tensor& x);

// Product of all sizes but the last, for ops that work on rows.
std::int64_t rows_of(const Tensor& x);

}  // namespace heddle::ops
