// Values for cases, and conversions between tensors and float64.
#pragma once

#include "harness/harness.h"

namespace heddle::harness {

enum class Layout { contiguous, offset, transposed, strided };
std::string to_string(Layout layout);

// The inputs of a case as float64, rounded to what `dtype` can hold, the same for every call.
std::vector<std::vector<double>> case_values(const Case& c, DType dtype);

DType input_dtype(const In& in, DType dtype);

// A tensor with these values in row-major order, laid out in memory in one of several ways.
Tensor make_tensor(const Shape& shape, DType dtype, const std::vector<double>& values,
                   Layout layout = Layout::contiguous);

// The same inputs on another device; leaves stay leaves. On the CPU it is the inputs themselves.
Tensors inputs_on(Device device, const Tensors& inputs);

// All inputs of a case for activations of type `dtype`.
Tensors make_inputs(const Case& c, DType dtype, const std::vector<std::vector<double>>& values,
                    Layout layout);

std::vector<double> to_doubles(const Tensor& t);

// Deterministic normal numbers.
std::vector<double> normals(std::int64_t count, std::uint64_t seed);

// Runs the op on a tape and its vjp with cotangents derived from `seed`.
struct Evaluation {
  Tensors outputs;
  Tensors grads;  // one per input; undefined where not differentiable
};
Evaluation evaluate(const Case& c, Tensors inputs, DType dtype);

// The cotangent of output `i`, rounded to the output's type.
std::vector<double> cotangent_values(const Tensor& output, std::size_t i);

}  // namespace heddle::harness
