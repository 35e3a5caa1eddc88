#include "nn/finite.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/observe.h"
#include "heddle/error.h"
#include "language/language.h"
#include "ops/copy/copy.h"
#include "ops/support/index.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

// A value that is not finite, and its place: "inf", "[0, 1]".
struct BadElement {
  std::string value, at;
};

std::optional<BadElement> first_bad_element(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype())) return std::nullopt;
  const auto values = ops::cast(tensor.detach(), DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return BadElement{bad_text(values[i]),
                        ops::coordinates(static_cast<std::int64_t>(i), tensor.shape())};
  return std::nullopt;
}

// Ends the pass: what comes later is bad because this is.
struct Found {
  Sentence sentence;
};

// `names`: parameters that the op reads; `passed`: those of an op before it.
Sentence bad_result(const autograd::OpEvent& event, std::size_t index, const BadElement& bad,
                    const std::string& names, const std::string& passed) {
  Sentence s;
  s.values = {std::to_string(index),          event.op,  std::to_string(event.number),
              event.values[index].describe(), bad.value, bad.at};
  if (!names.empty()) {
    s.english = event.backward ? mark(
                                     "the gradient of input {} of op {} ({}), number {} of the "
                                     "step, {}, is {} at {}")
                               : mark(
                                     "output {} of op {} ({}), number {} of the step, {}, is {} "
                                     "at {}");
    s.values.insert(s.values.begin() + 2, names);
  } else if (!passed.empty()) {
    s.english = event.backward
                    ? mark(
                          "the gradient of input {} of op {} (the op with {} came before), number "
                          "{} of the step, {}, is {} at {}")
                    : mark(
                          "output {} of op {} (the op with {} came before), number {} of the "
                          "step, {}, is {} at {}");
    s.values.insert(s.values.begin() + 2, passed);
  } else {
    s.english =
        event.backward
            ? mark("the gradient of input {} of op {}, number {} of the step, {}, is {} at {}")
            : mark("output {} of op {}, number {} of the step, {}, is {} at {}");
  }
  return s;
}

std::string names_of(const nn::Parameters& parameters, const std::vector<Tensor>& inputs) {
  std::string names;
  for (const Tensor& input : inputs)
    for (const nn::Parameter& p : parameters.all())
      if (input.defined() && input.impl() == p.tensor.impl())
        names += (names.empty() ? "" : ", ") + p.name;
  return names;
}

// In pieces: a copy of a large table in f32 would be the peak of loading a model.
bool all_finite(const Tensor& tensor) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  const Tensor flat = ops::reshape(ops::contiguous(tensor.detach()), {tensor.elements()});
  for (std::int64_t begin = 0; begin < flat.elements(); begin += kPiece) {
    const Tensor part = ops::slice(flat, 0, begin, std::min(begin + kPiece, flat.elements()));
    const Tensor wide = ops::cast(part, DType::f32).to(Device::cpu);
    const float* values = wide.data<float>();
    if (!std::all_of(values, values + wide.elements(), [](float v) { return std::isfinite(v); }))
      return false;
  }
  return true;
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
  const auto bad = first_bad_element(tensor);
  return bad ? bad->value + " at " + bad->at : "";
}

Sentence explain_bad_value(const nn::Parameters& parameters, const std::function<void()>& pass) {
  for (const nn::Parameter& p : parameters.all())
    if (const auto bad = first_bad_element(p.tensor))
      return {mark("parameter {} is {} at {}"), {p.name, bad->value, bad->at}};
  std::string passed;  // parameters of the last op that had any: where an op without one lies
  const autograd::ObserveOps observe([&](const autograd::OpEvent& event) {
    const std::string names = names_of(parameters, event.inputs);
    for (std::size_t i = 0; i < event.values.size(); ++i)
      if (const auto bad = first_bad_element(event.values[i]))
        throw Found{bad_result(event, i, *bad, names, passed)};
    if (!names.empty()) passed = names;
  });
  try {
    pass();
  } catch (const Found& found) {
    return found.sentence;
  }
  return {};
}

}  // namespace heddle::nn
