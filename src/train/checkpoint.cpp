#include "train/checkpoint.h"

#include <algorithm>

#include "heddle/error.h"
#include "heddle/ops/copy.h"
#include "io/crc32.h"

namespace heddle::train {

namespace {

constexpr const char* kStateKey = "heddle.state";
constexpr const char* kChecksumKey = "heddle.crc32";
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

// Of the state and of all tensors, in the file's order. Names, shapes and places need none: the
// header has to fit the run and the file to the byte.
std::string checksum(const std::string& state, const std::vector<Tensor>& tensors) {
  io::Crc32 sum;
  sum.add(state);
  for (const Tensor& tensor : tensors) {
    if (tensor.bytes() == 0) continue;
    const Tensor plain = ops::contiguous(tensor.detach());
    sum.add(plain.raw(), plain.bytes());
  }
  return sum.text();
}

void check_sum(const io::SafetensorsFile& file, const std::vector<Tensor>& tensors) {
  const auto written = file.metadata().find(kChecksumKey);
  if (written == file.metadata().end()) return;
  const std::string found = checksum(file.metadata().at(kStateKey), tensors);
  if (found != written->second)
    fail(ErrorCode::io, file.path(), "its bytes are not those that were written",
         "checksum " + written->second, found);
}

TrainState state_of(const io::SafetensorsFile& file) {
  const auto text = file.metadata().find(kStateKey);
  if (text == file.metadata().end())
    fail(ErrorCode::io, file.path(), "is not a checkpoint", "metadata " + std::string(kStateKey));
  return state_from_json(text->second, file.path() + ": " + kStateKey);
}

}  // namespace

TrainState read_state(const std::string& path) { return state_of(io::SafetensorsFile(path)); }

std::optional<TrainState> newest_state(const RunPaths& paths) {
  std::vector<std::int64_t> steps = checkpoint_steps(paths);
  std::ranges::reverse(steps);
  for (const std::int64_t step : steps) {
    try {
      TrainState state = read_state(paths.checkpoint(step));
      if (state.step == step) return state;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::io) throw;
    }
  }
  return std::nullopt;
}

void save_checkpoint(const std::string& path, const nn::ParameterStore& parameters,
                     const Optimizer& optimizer, const TrainState& state) {
  const std::vector<io::NamedTensor> all = contents(parameters, optimizer);
  std::vector<Tensor> tensors;
  tensors.reserve(all.size());
  for (const io::NamedTensor& t : all) tensors.push_back(t.tensor);
  const std::string text = to_json(state);
  io::write_safetensors(
      path, all,
      {{"format", "heddle"}, {kStateKey, text}, {kChecksumKey, checksum(text, tensors)}});
}

TrainState load_checkpoint(const std::string& path, nn::ParameterStore& parameters,
                           Optimizer& optimizer) {
  const io::SafetensorsFile file(path);
  const TrainState state = state_of(file);
  std::vector<io::NamedTensor> wanted = contents(parameters, optimizer);
  std::vector<Tensor> in_order;
  for (const io::TensorEntry& entry : file.entries()) {
    const auto found = std::ranges::find(wanted, entry.name, &io::NamedTensor::name);
    if (found == wanted.end())
      fail(ErrorCode::io, path, "tensor " + entry.name + " is not one of this run's");
    in_order.push_back(found->tensor);
  }
  for (io::NamedTensor& t : wanted) file.load_into(t.name, t.tensor);
  check_sum(file, in_order);
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
