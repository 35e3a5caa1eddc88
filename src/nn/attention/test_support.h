// Shared helpers for the tests of the attention layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "heddle/tape.h"
#include "nn/attention/attention.h"
#include "nn/attention/definition.h"

namespace heddle::nn {

using Doubles = std::vector<double>;
using Integers = std::vector<std::int64_t>;

inline Doubles doubles(const Tensor& t) {
  return ops::cast(t.detach(), DType::f64).to_vector<double>();
}

inline DType parameter_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// A layer outside of any model. Its parameters outlive the store that made them.
inline Attention make_attention(const AttentionConfig& config, const ParameterOptions& options = {},
                                std::shared_ptr<const Rotary> rotary = {}) {
  Parameters store(options);
  return {config, store.root(), std::move(rotary)};
}

inline Attention make_attention(const AttentionConfig& config, DType dtype,
                                Device device = Device::cpu) {
  return make_attention(config, ParameterOptions{.dtype = dtype, .device = device});
}

// Normal numbers that every type can hold, so that rounding is the computation's own.
inline Tensor normal(const Shape& shape, double deviation, std::uint32_t stream,
                     DType dtype = DType::f64) {
  const Tensor exact = ops::random_normal(shape, 0, deviation, {77, 1, stream}, DType::f32);
  return ops::cast(ops::cast(exact, DType::bf16), dtype);
}

inline Tensor integers(const Shape& shape, const Integers& values) {
  return Tensor::from<std::int64_t>(shape, std::span<const std::int64_t>(values));
}

// |x|, of a tensor on no tape.
inline Tensor absolute(const Tensor& x) { return ops::maximum(x, ops::neg(x)); }

// Fills every parameter, biases and sinks too, with numbers that depend on its name alone.
// Positive: all that scores are made of is.
inline void randomise(Attention& layer, DType dtype, bool positive = false) {
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    std::uint32_t stream = 1000;
    for (const char c : name) stream = stream * 31 + static_cast<unsigned char>(c);
    const double inputs = name.ends_with("weight") ? static_cast<double>(t.size(-1)) : 2;
    t = normal(t.shape(), 1 / std::sqrt(inputs), stream, parameter_type(dtype));
    if (positive && name[0] != 'v' && name[0] != 'o') t = absolute(t);
    t.set_requires_grad(true);
  });
}

inline book::Parameters float64(Attention& layer) {
  book::Parameters out;
  layer.for_each_parameter([&](std::string_view name, Tensor& t) {
    Tensor copy = ops::clone(ops::cast(t.detach(), DType::f64));
    copy.set_requires_grad(true);
    out.emplace(name, copy);
  });
  return out;
}

inline double largest(const Doubles& v) {
  double m = 0;
  for (const double x : v) m = std::max(m, std::abs(x));
  return m;
}

// max |a - b|; NaN counts as infinity.
inline double distance(const Doubles& a, const Doubles& b) {
  if (a.size() != b.size()) return INFINITY;
  double m = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    m = std::isnan(d) ? INFINITY : std::max(m, d);
  }
  return m;
}

inline std::string refusal(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace heddle::nn
