// A model's parameters out of the files of others, by the names of its family.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nn/parameters.h"
#include "pretrained/family.h"
#include "pretrained/files.h"

namespace heddle::pretrained {

// The name at the other side of a pattern: rename("layers.3.ffn.in.bias", "layers.#.ffn.in.*",
// "h.#.fc.*") is "h.3.fc.bias"; nothing where the name does not fit `from`.
std::optional<std::string> rename(std::string_view name, std::string_view from,
                                  std::string_view to);

// Gives a model the weights of the files as it is built. Call finish() afterwards: a tensor that no
// parameter asked for is an Error, because a model without a part of its weights is another one.
class NamedWeights {
 public:
  NamedWeights(const Family& family, const WeightFiles& files, const model::ModelConfig& config)
      : family_(family), files_(files), config_(config) {}

  nn::ParameterSource source();
  void finish() const;

 private:
  const TensorName& rule_of(const std::string& name) const;
  // Their name as this file has it: perhaps without the prefix.
  std::string present(std::string name) const;
  Tensor part(const TensorName& rule, const std::string& theirs);

  const Family& family_;
  const WeightFiles& files_;
  const model::ModelConfig& config_;
  std::set<std::string, std::less<>> asked_for_;
};

}  // namespace heddle::pretrained
