// Arithmetic of tensors as it is written on paper: the ops of heddle/ops/binary.h and
// heddle/ops/unary.h, differentiable like them. `*` goes element by element; the product of
// matrices is ops::matmul.
#pragma once

#include "heddle/ops/binary.h"
#include "heddle/ops/unary.h"
#include "heddle/tensor.h"

namespace heddle {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }

inline Tensor operator-(const Tensor& x) { return ops::neg(x); }

inline Tensor operator+(const Tensor& x, double number) { return ops::add(x, number); }
inline Tensor operator+(double number, const Tensor& x) { return ops::add(x, number); }
inline Tensor operator-(const Tensor& x, double number) { return ops::add(x, -number); }
inline Tensor operator-(double number, const Tensor& x) { return ops::add(ops::neg(x), number); }
inline Tensor operator*(const Tensor& x, double number) { return ops::scale(x, number); }
inline Tensor operator*(double number, const Tensor& x) { return ops::scale(x, number); }
inline Tensor operator/(const Tensor& x, double number) { return ops::scale(x, 1 / number); }

}  // namespace heddle
