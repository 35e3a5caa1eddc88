#include "ops/support/check.h"

#include <cmath>
#include <string>

#include "base/number_text.h"

namespace heddle::ops {

namespace {

std::string argument(const Arg& a) { return std::string("argument ") + a.name; }

[[noreturn]] void refuse(ErrorCode code, const Arg& a, const std::string& expected) {
  fail(code, a.op, argument(a), expected, a.tensor.describe());
}

}  // namespace

void check_defined(const Arg& a) {
  if (!a.tensor.defined()) [[unlikely]]
    refuse(ErrorCode::invalid_argument, a, "a tensor");
}

void check_compute(const Arg& a) {
  check_defined(a);
  const DType t = a.tensor.dtype();
  if (t != DType::f32 && t != DType::bf16 && t != DType::f64)
    refuse(ErrorCode::dtype_mismatch, a,
           t == DType::f16 ? "f32, bf16 or f64: f16 is widened where a new tensor is made, not here"
                           : "f32, bf16 or f64");
}

void check_dtype(const Arg& a, DType wanted) {
  check_defined(a);
  if (a.tensor.dtype() != wanted)
    refuse(ErrorCode::dtype_mismatch, a, std::string(to_string(wanted)));
}

void check_index(const Arg& a) {
  check_defined(a);
  if (a.tensor.dtype() != DType::i32 && a.tensor.dtype() != DType::i64)
    refuse(ErrorCode::dtype_mismatch, a, "indices in i32 or i64");
}

void check_shape(const Arg& a, const Shape& wanted) {
  check_defined(a);
  if (a.tensor.shape() != wanted)
    refuse(ErrorCode::shape_mismatch, a, "shape " + to_string(wanted));
}

void check_rank(const Arg& a, int wanted) {
  check_defined(a);
  if (a.tensor.rank() != wanted)
    refuse(ErrorCode::shape_mismatch, a, std::to_string(wanted) + " dimensions");
}

void check_rank_at_least(const Arg& a, int wanted) {
  check_defined(a);
  if (a.tensor.rank() < wanted)
    refuse(ErrorCode::shape_mismatch, a, std::to_string(wanted) + " or more dimensions");
}

void check_same_device(const Arg& a, const Tensor& other) {
  check_defined(a);
  if (a.tensor.device() != other.device())
    refuse(ErrorCode::device_mismatch, a, "a tensor on " + to_string(other.device()));
}

void check_condition(bool ok, const char* op, const char* name, std::string_view expected,
                     std::string_view got) {
  if (!ok) fail(ErrorCode::invalid_argument, op, std::string("argument ") + name, expected, got);
}

void check_number(const char* op, const char* name, bool ok, std::string_view expected,
                  double got) {
  if (ok && std::isfinite(got)) return;  // before a string is made of it
  check_condition(false, op, name, expected, number_text(got));
}

DType parameter_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void check_parameter(const Arg& a, const Tensor& x, const Shape& wanted) {
  check_defined(a);
  if (a.tensor.dtype() != parameter_dtype(x))
    refuse(ErrorCode::dtype_mismatch, a,
           std::string(to_string(parameter_dtype(x))) + " beside " +
               std::string(to_string(x.dtype())) + " activations");
  check_shape(a, wanted);
  check_same_device(a, x);
}

void check_like(const Arg& y, const Tensor& x) {
  check_dtype(y, x.dtype());
  check_shape(y, x.shape());
  check_same_device(y, x);
}

std::int64_t rows_of(const Tensor& x) {
  return x.shape().back() == 0 ? 0 : x.elements() / x.shape().back();
}

}  // namespace heddle::ops
