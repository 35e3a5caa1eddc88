// The parameters of a model: made or loaded by name, in one place.
//
//   Parameters store({.seed = 1});
//   Norm norm(config, store.root() / "norm");     // asks its scope for "norm.weight"
//   for (Parameter& p : store.all()) ...          // in the order in which they were requested
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::nn {

// How weights of matrix products and tables begin; biases begin at 0, gains at 1.
enum class InitRule : std::uint8_t {
  fan_in,  // normal, variance 1 / inputs
  normal,  // normal, the given deviation
  xavier,  // uniform in ±√(6 / (inputs + outputs))
};

struct InitOptions {
  InitRule rule = InitRule::fan_in;
  double deviation = 0.02;  // of InitRule::normal, and of embedding tables under it
  // Of the last product of each branch that joins the residual stream, so that the sum of many
  // branches does not grow with the depth: GPT-2 takes 1 / √(2 · layers).
  double branch_gain = 1;
};

// Says what a parameter begins with: a value by name that is already known (of this shape and of a
// floating-point type), or an undefined tensor for the initial values of the rule.
using ParameterSource = std::function<Tensor(const std::string& name, const Shape& shape)>;

struct ParameterOptions {
  std::uint64_t seed = 0;
  InitOptions init = {};
  DType dtype = DType::f32;  // f32, or f64 for proofs
  Device device = Device::cpu;
  ParameterSource source = {};
};

struct Parameter {
  std::string name;
  Tensor tensor;  // shares its storage with the layer's
};

// Of a product: `inputs` terms are summed for each result, `outputs` results use an input.
struct Fans {
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
};

class Scope;

class Parameters {
 public:
  explicit Parameters(const ParameterOptions& options);  // throws Error unless f32 or f64
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  Scope root();

  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  std::int64_t count() const;  // of all elements
  // Another number whenever any of them was written.
  std::uint64_t version() const;
  const ParameterOptions& options() const { return options_; }

 private:
  friend class Scope;
  Tensor add(const std::string& name, const Shape& shape, const std::function<Tensor()>& initial);

  ParameterOptions options_;
  std::vector<Parameter> all_;
  std::unordered_set<std::string> names_;  // of all_
};

// A place in the tree of names. The random numbers of a parameter depend on the seed and on its
// full name alone: two variants of a model begin with the same values wherever they have the same
// parameters.
class Scope {
 public:
  Scope(Parameters& store, std::string prefix) : store_(&store), prefix_(std::move(prefix)) {}

  Scope operator/(std::string_view name) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }

  Tensor weight(std::string_view name, const Shape& shape, const Fans& fans) const;
  // A weight [outputs, inputs].
  Tensor weight(std::string_view name, const Shape& shape) const;
  // The same for the last product of a residual branch.
  Tensor branch_weight(std::string_view name, const Shape& shape) const;
  // A weight [size, size] that is applied at every step of a sequence. Under fan_in a random
  // orthogonal matrix: of the same variance, but a state keeps its length under it, so that neither
  // states nor gradients fade with the number of steps. Otherwise as the rule says.
  Tensor recurrent_weight(std::string_view name, std::int64_t size) const;
  // A table of vectors [rows, width] that are looked up: normal, the deviation of the rule, or
  // 1 / √width under the others.
  Tensor table(std::string_view name, const Shape& shape) const;
  Tensor constant(std::string_view name, const Shape& shape, double value) const;
  Tensor zeros(std::string_view name, const Shape& shape) const { return constant(name, shape, 0); }

  DType dtype() const { return store_->options().dtype; }
  Device device() const { return store_->options().device; }
  std::uint64_t seed() const { return store_->options().seed; }

 private:
  std::string full(std::string_view name) const;
  Tensor product(std::string_view name, const Shape& shape, const Fans& fans, double gain) const;
  Tensor random(std::string_view name, const Shape& shape, InitRule rule, double amount) const;

  Parameters* store_;
  std::string prefix_;
};

}  // namespace heddle::nn
