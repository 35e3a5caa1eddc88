#include "nn/finite.h"

#include <algorithm>
#include <cmath>

#include "autograd/observe.h"
#include "heddle/error.h"
#include "ops/copy/copy.h"

namespace heddle::nn {

namespace {

// The place of element `index` in row-major order.
std::string place(const Shape& shape, std::int64_t index) {
  Shape at = shape;
  for (int d = shape.rank(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return to_string(at);
}

// Ends the pass: what comes later is bad because this is.
struct Found {
  std::string sentence;
};

std::string names_of(const nn::Parameters& parameters, const std::vector<Tensor>& inputs) {
  std::string names;
  for (const Tensor& input : inputs)
    for (const nn::Parameter& p : parameters.all())
      if (input.defined() && input.impl() == p.tensor.impl())
        names += (names.empty() ? "" : ", ") + p.name;
  return names;
}

bool all_finite(const Tensor& tensor) {
  const Tensor flat = ops::contiguous(ops::cast(tensor.detach(), DType::f32)).to(Device::cpu);
  const float* values = flat.data<float>();
  return std::all_of(values, values + flat.elements(), [](float v) { return std::isfinite(v); });
}

}  // namespace

void check_parameters(const nn::Parameters& parameters, std::string_view where) {
  for (const nn::Parameter& p : parameters.all())
    if (!all_finite(p.tensor))
      fail(ErrorCode::invalid_argument, where, "parameter " + p.name, "finite numbers",
           first_bad_value(p.tensor));
}

std::string bad_text(double bad) {
  if (std::isnan(bad)) return "nan";
  return bad > 0 ? "inf" : "-inf";
}

std::string first_bad_value(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype())) return "";
  const auto values = ops::cast(tensor.detach(), DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return bad_text(values[i]) + " at " + place(tensor.shape(), static_cast<std::int64_t>(i));
  return "";
}

std::string explain_bad_value(const nn::Parameters& parameters, const std::function<void()>& pass) {
  for (const nn::Parameter& p : parameters.all())
    if (const std::string bad = first_bad_value(p.tensor); !bad.empty())
      return "parameter " + p.name + " is " + bad;
  std::string passed;  // parameters of the last op that had any: where an op without one lies
  const autograd::ObserveOps observe([&](const autograd::OpEvent& event) {
    const std::string names = names_of(parameters, event.inputs);
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      const std::string bad = first_bad_value(event.values[i]);
      if (bad.empty()) continue;
      std::string what = event.backward ? "the gradient of input " : "output ";
      what += std::to_string(i) + " of op " + event.op;
      if (!names.empty()) what += " (" + names + ")";
      if (names.empty() && !passed.empty()) what += " (the op with " + passed + " came before)";
      what += ", number " + std::to_string(event.number) + " of the step, " +
              event.values[i].describe() + ", is " + bad;
      throw Found{what};
    }
    if (!names.empty()) passed = names;
  });
  try {
    pass();
  } catch (const Found& found) {
    return found.sentence;
  }
  return "";
}

}  // namespace heddle::nn
