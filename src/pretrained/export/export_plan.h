// Which family a model can be written as, and each tensor of its files.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "pretrained/family.h"
#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// The tensors of a model by the names of a family, made one by one when they are asked for.
class GivenWeights final : public WeightFiles {
 public:
  // Throws Error where the family has no name for a parameter.
  GivenWeights(const Family& family, const model::Model& model);

  // How rows of queries and keys are to be ordered: as the configuration that a reader makes of
  // the files has them.
  void read_as(const model::ModelConfig& config) { read_as_ = config; }
  // A tensor beside the model's: factors of rotary positions.
  void add(std::string name, Tensor tensor) { extra_[std::move(name)] = std::move(tensor); }

  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override;
  Tensor load(std::string_view name, DType wanted) const override;
  Shape shape(std::string_view name) const override;
  std::string type(std::string_view) const override { return "F32"; }
  std::uint64_t bytes(std::string_view) const override { return 0; }
  std::string where() const override { return std::string(family_.name); }

 private:
  struct Source {
    const TensorName* rule = nullptr;
    const nn::Parameter* parameter = nullptr;
    enum class Rows : std::uint8_t { all, first_half, second_half } rows = Rows::all;
    std::int64_t place = -1;  // in a stack of experts
  };
  const TensorName& rule_of(const std::string& ours) const;
  void add_source(const TensorName& rule, const nn::Parameter& parameter, std::string_view pattern,
                  Source::Rows rows);
  Tensor ordered(const nn::Parameter& parameter) const;
  Tensor rows_of(const Source& source) const;

  const Family& family_;
  const model::ModelConfig& config_;
  model::ModelConfig read_as_;
  std::map<std::string, std::vector<Source>, std::less<>> sources_;
  std::map<std::string, Tensor, std::less<>> extra_;
};

struct ExportPlan {
  const Family* family = nullptr;
  Settings settings;
  std::unique_ptr<GivenWeights> weights;
};

// The configuration that a reader makes of a family's settings and tensors.
using ReadBack = model::ModelConfig (*)(const Family&, const Settings&, const WeightFiles&);

// The first family, the one called `first` before all others, whose files read back as this model.
// Throws Error naming the axes in which the nearest one differs.
ExportPlan plan_export(std::span<const Family> families, std::string_view first,
                       const model::Model& model, ReadBack read_back);

}  // namespace heddle::pretrained
