// The weights that fine-tuning begins with, by the names that parameters have here.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "nn/parameters.h"
#include "pretrained/load.h"
#include "pretrained/names/names.h"

namespace heddle::train {

class OldWeights {
 public:
  virtual ~OldWeights() = default;
  OldWeights() = default;
  OldWeights(const OldWeights&) = delete;
  OldWeights& operator=(const OldWeights&) = delete;

  const std::vector<std::string>& names() const { return names_; }
  virtual Tensor load(const std::string& name) const = 0;  // on the CPU
  virtual std::string where() const = 0;                   // what errors name

 protected:
  std::vector<std::string> names_;
};

// model.safetensors of a run, whose checksum is compared first.
class WeightsOfRun final : public OldWeights {
 public:
  explicit WeightsOfRun(const std::string& path);
  Tensor load(const std::string& name) const override { return file_.load(name); }
  std::string where() const override { return file_.path(); }

 private:
  io::SafetensorsFile file_;
};

class WeightsOfOthers final : public OldWeights {
 public:
  explicit WeightsOfOthers(const pretrained::Opened& opened);
  Tensor load(const std::string& name) const override;
  std::string where() const override;
  // Error for a tensor of the files that no parameter of the old model is made of.
  void finish() const;

 private:
  const pretrained::Opened& opened_;
  pretrained::NamedWeights weights_;
  nn::ParameterSource source_;
  std::unique_ptr<model::Model> shapes_;  // the model without its numbers
  mutable std::set<std::string> loaded_;
};

}  // namespace heddle::train
