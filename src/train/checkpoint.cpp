#include "train/checkpoint.h"

#include <algorithm>

#include "heddle/error.h"

namespace heddle::train {

namespace {

constexpr const char* kStateKey = "heddle.state";
constexpr const char* kOptimizerPrefix = "optimizer.";

// Everything a checkpoint holds, by its name there. The tensors share storage with the originals.
std::vector<io::NamedTensor> contents(const nn::ParameterStore& parameters,
                                      const Optimizer& optimizer) {
  std::vector<io::NamedTensor> all;
  for (const nn::Parameter& p : parameters.all()) all.push_back({p.name, p.tensor});
  for (const nn::Parameter& p : optimizer.state())
    all.push_back({kOptimizerPrefix + p.name, p.tensor});
  return all;
}

TrainState state_of(const io::SafetensorsFile& file) {
  const auto text = file.metadata().find(kStateKey);
  if (text == file.metadata().end())
    fail(ErrorCode::io, file.path(), "is not a checkpoint", "metadata " + std::string(kStateKey));
  return state_from_json(text->second, file.path() + ": " + kStateKey);
}

}  // namespace

TrainState read_state(const std::string& path) { return state_of(io::SafetensorsFile(path)); }

void save_checkpoint(const std::string& path, const nn::ParameterStore& parameters,
                     const Optimizer& optimizer, const TrainState& state) {
  io::write_safetensors(path, contents(parameters, optimizer),
                        {{"format", "heddle"}, {kStateKey, to_json(state)}});
}

TrainState load_checkpoint(const std::string& path, nn::ParameterStore& parameters,
                           Optimizer& optimizer) {
  const io::SafetensorsFile file(path);
  const TrainState state = state_of(file);
  std::vector<io::NamedTensor> wanted = contents(parameters, optimizer);
  for (const io::TensorEntry& entry : file.entries())
    if (std::ranges::none_of(wanted, [&](const auto& t) { return t.name == entry.name; }))
      fail(ErrorCode::io, path, "tensor " + entry.name + " is not one of this run's");
  for (io::NamedTensor& t : wanted) file.load_into(t.name, t.tensor);
  return state;
}

void save_weights(const std::string& path, const nn::ParameterStore& parameters) {
  std::vector<io::NamedTensor> all;
  for (const nn::Parameter& p : parameters.all()) all.push_back({p.name, p.tensor});
  io::write_safetensors(path, all, {{"format", "heddle"}});
}

nn::ParameterSource WeightSource::source() {
  return [this](const std::string& name, const Shape&) {
    asked_for_.push_back(name);
    return file_.load(name);
  };
}

void WeightSource::finish() const {
  for (const io::TensorEntry& entry : file_.entries())
    if (std::ranges::find(asked_for_, entry.name) == asked_for_.end())
      fail(ErrorCode::io, file_.path(), "tensor " + entry.name + " belongs to no parameter");
}

}  // namespace heddle::train
