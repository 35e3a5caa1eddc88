#include "harness/values.h"

#include <cmath>
#include <numbers>

#include "heddle/random.h"

namespace heddle::harness {

namespace {

double round_to(double v, DType dtype) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(static_cast<float>(v));
    case DType::bf16:
      return static_cast<double>(bf16::from_float(static_cast<float>(v)).to_float());
    case DType::f16: return static_cast<double>(f16::from_float(static_cast<float>(v)).to_float());
    default: return v;
  }
}

double filled(const In& in, double normal) {
  switch (in.fill) {
    case Fill::normal: return normal;
    case Fill::positive: return 0.5 + 1.5 / (1 + std::exp(-normal));
    case Fill::off_zero: return normal < 0 ? normal - 0.1 : normal + 0.1;
    case Fill::index: {
      const double unit = 0.5 * std::erfc(-normal / std::numbers::sqrt2);
      return std::min(std::floor(unit * static_cast<double>(in.bound)),
                      static_cast<double>(in.bound - 1));
    }
    case Fill::given: break;
  }
  return 0;
}

void write(Tensor& t, std::int64_t at, double v) {
  const auto i = static_cast<std::size_t>(at);
  switch (t.dtype()) {
    case DType::f32: t.mutable_data<float>()[i] = static_cast<float>(v); break;
    case DType::bf16: t.mutable_data<bf16>()[i] = bf16::from_float(static_cast<float>(v)); break;
    case DType::f16: t.mutable_data<f16>()[i] = f16::from_float(static_cast<float>(v)); break;
    case DType::f64: t.mutable_data<double>()[i] = v; break;
    case DType::i32: t.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(v); break;
    case DType::i64: t.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(v); break;
    case DType::u8: t.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(v); break;
  }
}

void fill_view(Tensor view, const std::vector<double>& values) {
  Dims at;
  for (int i = 0; i < view.rank(); ++i) at.push_back(0);
  for (const double v : values) {
    std::int64_t offset = 0;
    for (int i = 0; i < view.rank(); ++i) offset += at[i] * view.strides()[i];
    write(view, offset, v);
    for (int i = view.rank() - 1; i >= 0 && ++at[i] == view.shape()[i]; --i) at[i] = 0;
  }
}

// A view of the wanted shape on storage that is not plain row-major.
Tensor laid_out(const Shape& shape, DType dtype, Layout layout) {
  if (shape.rank() == 0 || layout == Layout::contiguous) return Tensor::empty(shape, dtype);
  Shape wide = shape;
  const int last = shape.rank() - 1;
  switch (layout) {
    case Layout::offset: {  // contiguous, but beginning at an odd address
      Tensor flat = Tensor::zeros({elements_of(shape) + 3}, dtype);
      return views::reshape(views::slice(flat, 0, 3, elements_of(shape) + 3), shape);
    }
    case Layout::transposed: {  // dimensions in reverse order in memory
      Shape reversed;
      std::vector<int> order;
      for (int i = last; i >= 0; --i) {
        reversed.push_back(shape[i]);
        order.push_back(i);
      }
      return views::permute(Tensor::zeros(reversed, dtype), order);
    }
    default:  // every second element of the last dimension
      wide[last] = 2 * shape[last];
      return views::slice(Tensor::zeros(wide, dtype), last, 0, wide[last], 2);
  }
}

}  // namespace

std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::contiguous: return "contiguous";
    case Layout::offset: return "offset";
    case Layout::transposed: return "transposed";
    case Layout::strided: return "strided";
  }
  return "";
}

std::vector<double> normals(std::int64_t count, std::uint64_t seed) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(count));
  const RandomKey key{seed, 1, 2};
  for (std::uint64_t i = 0; static_cast<std::int64_t>(out.size()) < count; ++i) {
    const PhiloxBlock b = philox(key, i);
    // Box-Muller
    const double u = (static_cast<double>(b[0]) + 0.5) * 0x1p-32;
    const double v = (static_cast<double>(b[1]) + 0.5) * 0x1p-32;
    const double r = std::sqrt(-2 * std::log(u));
    out.push_back(r * std::cos(2 * std::numbers::pi * v));
    if (static_cast<std::int64_t>(out.size()) < count)
      out.push_back(r * std::sin(2 * std::numbers::pi * v));
  }
  return out;
}

DType input_dtype(const In& in, DType dtype) {
  if (in.bound > 0 || in.fill == Fill::index) return in.index_dtype;
  if (in.fill == Fill::given) return in.index_dtype;
  const bool narrow = dtype == DType::bf16 || dtype == DType::f16;
  return in.parameter && narrow ? DType::f32 : dtype;
}

std::vector<std::vector<double>> case_values(const Case& c, DType dtype) {
  std::vector<std::vector<double>> all;
  std::uint64_t seed = 11;
  for (const In& in : c.inputs) {
    std::vector<double> values = in.values;
    if (in.fill != Fill::given) {
      values = normals(elements_of(in.shape), ++seed);
      for (double& v : values) v = round_to(filled(in, v), input_dtype(in, dtype));
    }
    all.push_back(std::move(values));
  }
  return all;
}

Tensor make_tensor(const Shape& shape, DType dtype, const std::vector<double>& values,
                   Layout layout) {
  Tensor t = laid_out(shape, dtype, layout);
  fill_view(t, values);
  return t;
}

Tensors make_inputs(const Case& c, DType dtype, const std::vector<std::vector<double>>& values,
                    Layout layout) {
  Tensors inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const In& in = c.inputs[i];
    Tensor t = make_tensor(in.shape, input_dtype(in, dtype), values[i], layout);
    if (c.gradient && in.differentiable && is_floating(t.dtype())) t.set_requires_grad(true);
    inputs.push_back(std::move(t));
  }
  return inputs;
}

template <class T>
std::vector<double> widened(const std::vector<T>& v) {
  std::vector<double> out;
  out.reserve(v.size());
  for (const T& x : v) {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      out.push_back(static_cast<double>(x.to_float()));
    else
      out.push_back(static_cast<double>(x));
  }
  return out;
}

std::vector<double> to_doubles(const Tensor& t) {
  switch (t.dtype()) {
    case DType::f32: return widened(t.to_vector<float>());
    case DType::bf16: return widened(t.to_vector<bf16>());
    case DType::f16: return widened(t.to_vector<f16>());
    case DType::f64: return t.to_vector<double>();
    case DType::i32: return widened(t.to_vector<std::int32_t>());
    case DType::i64: return widened(t.to_vector<std::int64_t>());
    case DType::u8: return widened(t.to_vector<std::uint8_t>());
  }
  return {};
}

std::vector<double> cotangent_values(const Tensor& output, std::size_t i) {
  std::vector<double> values = normals(output.elements(), 1000 + i);
  // Rounded to bf16 in every type, so that all types see the same cotangent.
  for (double& v : values) v = round_to(v, DType::bf16);
  return values;
}

Tensors inputs_on(Device device, const Tensors& inputs) {
  Tensors there;
  there.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    Tensor y = x.to(device);
    if (x.requires_grad()) y.set_requires_grad(true);
    there.push_back(std::move(y));
  }
  return there;
}

Evaluation evaluate(const Case& c, Tensors inputs, DType) {
  Evaluation e;
  if (!c.gradient) {
    e.outputs = c.run(inputs);
    return e;
  }
  Tape tape;
  e.outputs = c.run(inputs);
  Tensors outputs;
  Tensors cotangents;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    const Tensor& y = e.outputs[i];
    if (!is_floating(y.dtype())) continue;
    outputs.push_back(y);
    cotangents.push_back(make_tensor(y.shape(), y.dtype(), cotangent_values(y, i)).to(y.device()));
  }
  tape.backward(outputs, cotangents);
  for (const Tensor& x : inputs) e.grads.push_back(x.grad());
  return e;
}

}  // namespace heddle::harness
