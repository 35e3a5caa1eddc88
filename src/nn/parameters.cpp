#include "nn/parameters.h"

#include <cmath>
#include <utility>

#include "heddle/memory.h"
#include "heddle/random.h"
#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"
#include "tensor/storage.h"

namespace heddle::nn {

namespace {

// FNV-1a. Two names that meet in one stream would begin alike, which does no harm.
std::uint32_t stream_of(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// The type in which parameters begin, and all those stay that are neither matrix nor table: biases
// and gains are few, and read in f32.
DType wide_type(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

// ‖X Xᵀ‖² = Σ σ⁴ over the singular values σ of x.
double fourth_powers(const Tensor& gram) { return ops::sum_all(ops::square(gram)).item(); }

// The orthogonal matrix nearest to x (its polar factor), by X <- (3 X - X Xᵀ X) / 2, which takes
// all singular values from (0, √3) to 1; small ones grow by half each time. Of a matrix of
// independent normal numbers it is uniform among all orthogonal ones.
Tensor nearest_orthogonal(Tensor x) {
  constexpr int kMostSteps = 80;
  const auto size = static_cast<double>(x.size(0));
  const auto gram = [&x] { return ops::matmul(x, ops::transpose(x, 0, 1)); };
  const bool meta = x.device().is_meta();
  // No singular value is larger than the fourth root of the sum of their fourth powers.
  x = ops::scale(x, meta ? 1 : 1 / std::pow(fourth_powers(gram()), 0.25));
  for (int i = 0; i < kMostSteps; ++i) {
    const Tensor squares = gram();
    x = ops::sub(ops::scale(x, 1.5), ops::scale(ops::matmul(squares, x), 0.5));
    if (meta || fourth_powers(squares) > size * (1 - 1e-9)) break;
  }
  return x;
}

}  // namespace

Parameters::Parameters(const ParameterOptions& options) : options_(options) {
  if (options.dtype != DType::f32 && options.dtype != DType::f64 && options.dtype != DType::bf16)
    fail(ErrorCode::dtype_mismatch, "parameters", "type of the parameters", "f32, f64 or bf16",
         to_string(options.dtype));
}

Scope Parameters::root() { return {*this, ""}; }

std::uint64_t Parameters::version() const {
  std::uint64_t sum = 0;
  for (const Parameter& p : all_) sum += p.tensor.impl()->storage->version();
  return sum;
}

std::int64_t Parameters::count() const {
  std::int64_t sum = 0;
  for (const Parameter& p : all_) sum += p.tensor.elements();
  return sum;
}

Tensor Parameters::add(const std::string& name, const Shape& shape,
                       const std::function<Tensor()>& initial) {
  if (names_.contains(name))
    fail(ErrorCode::invalid_argument, "parameters", "name " + name, "new names",
         "one that is taken");
  const PurposeScope purpose(Purpose::parameters);
  Tensor tensor = options_.source ? options_.source(name, shape) : Tensor();
  if (!tensor.defined()) {
    tensor = initial();
  } else {
    if (tensor.shape() != shape)
      fail(ErrorCode::shape_mismatch, "parameters", "tensor " + name, to_string(shape),
           to_string(tensor.shape()));
    tensor = tensor.detach().to(options_.device);
  }
  // Positions are added and not multiplied with: their table is small, and one that is a sum of two
  // tables of a file (BERT's segments) is no bf16 number any more.
  const bool narrow = shape.rank() == 2 && !name.ends_with("position.weight");
  tensor = ops::cast(tensor, narrow ? options_.dtype : wide_type(options_.dtype));
  tensor.set_requires_grad(options_.dtype != DType::bf16);
  all_.push_back({name, tensor});
  names_.insert(name);
  return tensor;
}

Scope Scope::operator/(std::string_view name) const { return {*store_, full(name)}; }

std::string Scope::full(std::string_view name) const {
  return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
}

Tensor Scope::random(std::string_view name, const Shape& shape, InitRule rule,
                     double amount) const {
  const std::string path = full(name);
  return store_->add(path, shape, [&] {
    const RandomKey key{seed(), 0, stream_of(path)};
    if (rule == InitRule::xavier)
      return ops::random_uniform(shape, -amount, amount, key, wide_type(dtype()), device());
    return ops::random_normal(shape, 0, amount, key, wide_type(dtype()), device());
  });
}

Tensor Scope::product(std::string_view name, const Shape& shape, const Fans& fans,
                      double gain) const {
  const InitOptions& init = store_->options().init;
  const auto in = static_cast<double>(fans.inputs), out = static_cast<double>(fans.outputs);
  double amount = init.deviation;
  if (init.rule == InitRule::fan_in) amount = 1 / std::sqrt(in);
  if (init.rule == InitRule::xavier) amount = std::sqrt(6 / (in + out));
  return random(name, shape, init.rule, gain * amount);
}

Tensor Scope::weight(std::string_view name, const Shape& shape, const Fans& fans) const {
  return product(name, shape, fans, 1);
}

Tensor Scope::weight(std::string_view name, const Shape& shape) const {
  return product(name, shape, {shape[1], shape[0]}, 1);
}

Tensor Scope::branch_weight(std::string_view name, const Shape& shape) const {
  return product(name, shape, {shape[1], shape[0]}, store_->options().init.branch_gain);
}

Tensor Scope::recurrent_weight(std::string_view name, std::int64_t size) const {
  const Shape shape{size, size};
  if (store_->options().init.rule != InitRule::fan_in)
    return ops::cast(this->weight(name, shape), wide_type(dtype()));
  const std::string path = full(name);
  const Tensor weight = store_->add(path, shape, [&] {
    const NoGrad no_grad;
    const RandomKey key{seed(), 0, stream_of(path)};
    const Tensor start = ops::random_normal(shape, 0, 1, key, DType::f64, device());
    return ops::cast(nearest_orthogonal(start), wide_type(dtype()));
  });
  return ops::cast(weight, wide_type(dtype()));  // scans read no other
}

Tensor Scope::table(std::string_view name, const Shape& shape) const {
  const InitOptions& init = store_->options().init;
  const double width = static_cast<double>(shape[1]);
  return random(name, shape, InitRule::normal,
                init.rule == InitRule::normal ? init.deviation : 1 / std::sqrt(width));
}

Tensor Scope::constant(std::string_view name, const Shape& shape, double value) const {
  return store_->add(full(name), shape,
                     [&] { return Tensor::full(shape, value, wide_type(dtype()), device()); });
}

}  // namespace heddle::nn
