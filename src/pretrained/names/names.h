// A model's parameters out of the files of others, by the names of its family.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nn/parameters.h"
#include "pretrained/family.h"
#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// The name at the other side of a pattern: rename("layers.3.ffn.in.bias", "layers.#.ffn.in.*",
// "h.#.fc.*") is "h.3.fc.bias"; nothing where the name does not fit `from`.
std::optional<std::string> rename(std::string_view name, std::string_view from,
                                  std::string_view to);

// Where their name has a number less than ours, all experts of a layer lie in one tensor, one
// behind the other: which of them the name means. Nothing where the numbers are as many.
std::optional<std::int64_t> place_in_stack(std::string_view name, std::string_view from,
                                           std::string_view to);

// Gives a model the weights of the files as it is built. Call finish() afterwards: a tensor that no
// parameter asked for is an Error, because a model without a part of its weights is another one.
class NamedWeights {
 public:
  // `wanted`: the type that matrices are going to have.
  NamedWeights(const Family& family, const WeightFiles& files, const model::ModelConfig& config,
               DType wanted = DType::f32)
      : family_(family), files_(files), config_(config), wanted_(wanted) {}

  nn::ParameterSource source();
  void finish() const;

 private:
  const TensorName& rule_of(const std::string& name) const;
  // Their name as this file has it: with or without the prefix.
  std::string present(std::string name) const;
  Tensor loaded(const Tensor& source) const;
  // Throws Error unless the tensor holds as many experts as the model has.
  void require_stack(const std::string& name) const;
  // The part that the rule takes out of the tensor that `pattern`, one of its names of theirs,
  // stands for.
  Tensor part(const TensorName& rule, const std::string& ours, std::string_view pattern);

  const Family& family_;
  const WeightFiles& files_;
  const model::ModelConfig& config_;
  DType wanted_;
  std::set<std::string, std::less<>> asked_for_;
};

}  // namespace heddle::pretrained
