// Weights, batches and errors of a check. Everything is random and follows from fixed keys.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/tensor.h"
#include "model/model.h"

namespace heddle::check {

using Weights = std::map<std::string, Tensor>;  // f32, every number one that bf16 can hold

// As the parameters begin, except that gains are not 1 and biases not 0, where they would hide
// mistakes.
Weights random_weights(const nn::Parameters& beginning);
Weights random_weights(const model::ModelConfig& config);

// Hands them out by name, each as a copy.
nn::ParameterSource source_of(const Weights& weights);

std::unique_ptr<model::Model> make_model(const model::ModelConfig& config, const Weights& weights,
                                         DType precision, Device device = Device::cpu);

// Three sequences; where the kind has padding the second and third are shorter. Some targets do not
// count.
model::Batch random_batch(const model::ModelConfig& config);
void add_documents(model::Batch& batch);  // in some of the sequences several
model::Batch on_meta(const model::Batch& batch);

// Normal numbers that every type can hold, so that rounding is the computation's own.
Tensor normal(const Shape& shape, double deviation, std::uint32_t stream, DType dtype);

Tensor random_ids(const Shape& shape, std::int64_t limit, std::uint32_t stream);  // i32

DType parameter_type(DType precision);  // f64 for f64, else f32

// Of all elements, with r the root mean square of b:
//   largest  the largest |a - b| / (|b| + r): relative for large elements, and kind to those that
//            happen to be small
//   mean     the root mean square of a - b over r: where single elements may jump
enum class Measure : std::uint8_t { largest, mean };

// Infinite for NaN and for other shapes. `least`: taken for r where r is less.
double error_of(const Tensor& got, const Tensor& want, Measure measure = Measure::largest,
                double least = 0);

// How many elements have other bits; all of them if the shapes differ.
std::int64_t other_bits(const Tensor& a, const Tensor& b);

// One number or tensor by name: a parameter's gradient, the logits.
struct Named {
  std::string name;
  Tensor value;  // undefined: no gradient (an expert that no token chose)
  // Tensors that are measured together; empty: those of the same layer, by their names.
  std::string group = {};
  bool apart = false;  // no part of the size of all, see differences_of()
};

double root_mean_square(const Tensor& t);

// How far a tensor is from what it should be, by both measures.
struct Difference {
  std::string name, group;
  double largest = 0, mean = 0;
  std::int64_t elements = 0;  // that the mean is of; 0: many
};

// Of tensors in the same order. One that is there on one side only: infinite. A tensor's error is
// relative to at least 0.3 of the size that those of its group have: some gradients are 0 by
// mathematics and nothing but rounding by arithmetic, as that of a key's bias. And to at least 1e-3
// of the size that all have: so is that of a router whose experts have equally many tokens. Tensors
// apart do not count: beside logits, errors of gradients would be smaller than by themselves.
std::vector<Difference> differences_of(const std::vector<Named>& got,
                                       const std::vector<Named>& want);

}  // namespace heddle::check
