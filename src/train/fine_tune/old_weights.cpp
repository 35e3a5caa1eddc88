#include "train/fine_tune/old_weights.h"

#include <algorithm>

#include "heddle/error.h"
#include "run/weights.h"

namespace heddle::train {
namespace {

std::unique_ptr<model::Model> shapes_of(const model::ModelConfig& config) {
  model::BuildOptions options;
  options.device = Device::meta;
  return model::build_model(config, options);
}

}  // namespace

WeightsOfRun::WeightsOfRun(const std::string& path) : file_(path) {
  run::check_weights(file_);
  for (const io::TensorEntry& entry : file_.entries()) names_.push_back(entry.name);
}

WeightsOfOthers::WeightsOfOthers(const pretrained::Opened& opened)
    : opened_(opened),
      weights_(*opened.family, *opened.files, opened.config),
      source_(weights_.source()),
      shapes_(shapes_of(opened.config)) {
  for (const nn::Parameter& p : shapes_->parameters().all()) names_.push_back(p.name);
}

Tensor WeightsOfOthers::load(const std::string& name) const {
  const auto& all = shapes_->parameters().all();
  const auto found = std::ranges::find(all, name, &nn::Parameter::name);
  if (found == all.end())
    fail(ErrorCode::io, where(), "tensor " + name + " is not there", "one of the model's");
  loaded_.insert(name);
  return source_(name, found->tensor.shape());
}

std::string WeightsOfOthers::where() const { return opened_.files->where(); }

void WeightsOfOthers::finish() const {
  // A head that the new model has no place for is known all the same.
  for (const std::string& name : names_)
    if (!loaded_.contains(name)) (void)load(name);
  weights_.finish();
}

}  // namespace heddle::train
