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

// Of the state, if there is one, and of all tensors, in the file's order. Names, types, shapes and
// places have the header's own checksum (io/safetensors_seal.h).
class Checksum {
 public:
  explicit Checksum(const std::string& state) { sum_.add(state); }

  void add(const Tensor& tensor) {
    if (tensor.bytes() == 0) return;
    const Tensor plain = ops::contiguous(tensor.detach());
    sum_.add(plain.raw(), plain.bytes());
  }
  std::string text() const { return sum_.text(); }

 private:
  io::Crc32 sum_;
};

std::string checksum(const std::string& state, const std::vector<io::NamedTensor>& tensors) {
  Checksum sum(state);
  for (const io::NamedTensor& t : tensors) sum.add(t.tensor);
  return sum.text();
}

// Compares with what the file says of itself; tensor_of(entry) is what was read.
template <class TensorOf>
void check_sum(const io::SafetensorsFile& file, TensorOf tensor_of) {
  const auto written = file.metadata().find(kChecksumKey);
  if (written == file.metadata().end()) return;
  const auto state = file.metadata().find(kStateKey);
  Checksum sum(state == file.metadata().end() ? "" : state->second);
  for (const io::TensorEntry& entry : file.entries()) sum.add(tensor_of(entry));
  if (sum.text() != written->second)
    fail(ErrorCode::io, file.path(), "its bytes are not those that were written",
         "checksum " + written->second, sum.text());
}

TrainState state_of(const io::SafetensorsFile& file) {
  const auto text = file.metadata().find(kStateKey);
  if (text == file.metadata().end())
    fail(ErrorCode::io, file.path(), "is not a checkpoint", "metadata " + std::string(kStateKey));
  return state_from_json(text->second, file.path() + ": " + kStateKey);
}

// With a header that is as it was written it is no damage: the recipe is another one.
[[noreturn]] void refuse_other_model(const io::SafetensorsFile& file, const std::string& problem,
                                     const std::string& expected = {},
                                     const std::string& got = {}) {
  fail(file.sealed() ? ErrorCode::shape_mismatch : ErrorCode::io, file.path(),
       file.sealed() ? "is intact, but of another model than the recipe's: " + problem : problem,
       expected, got);
}

void check_belongs(const io::SafetensorsFile& file, const io::NamedTensor& wanted) {
  if (!file.sealed()) return;  // whoever reads it complains of a damaged file
  if (!file.contains(wanted.name)) refuse_other_model(file, "it has no tensor " + wanted.name);
  const io::TensorEntry& entry = file.entry(wanted.name);
  if (entry.known_dtype() != wanted.tensor.dtype() || Shape(entry.shape) != wanted.tensor.shape())
    refuse_other_model(file, "tensor " + wanted.name, wanted.tensor.describe(),
                       entry.dtype + " " + to_string(Shape(entry.shape)));
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
  const std::string text = to_json(state);
  io::write_safetensors(
      path, all, {{"format", "heddle"}, {kStateKey, text}, {kChecksumKey, checksum(text, all)}});
}

TrainState load_checkpoint(const std::string& path, nn::ParameterStore& parameters,
                           Optimizer& optimizer) {
  const io::SafetensorsFile file(path);
  const TrainState state = state_of(file);
  std::vector<io::NamedTensor> wanted = contents(parameters, optimizer);
  const auto named = [&wanted](const io::TensorEntry& entry) {
    return std::ranges::find(wanted, entry.name, &io::NamedTensor::name);
  };
  for (const io::TensorEntry& entry : file.entries())
    if (named(entry) == wanted.end())
      refuse_other_model(file, "tensor " + entry.name + " is not one of the recipe's model");
  for (io::NamedTensor& t : wanted) {
    check_belongs(file, t);
    file.load_into(t.name, t.tensor);
  }
  check_sum(file, [&named](const io::TensorEntry& entry) { return named(entry)->tensor; });
  return state;
}

void save_weights(const std::string& path, const nn::ParameterStore& parameters) {
  std::vector<io::NamedTensor> all;
  for (const nn::Parameter& p : parameters.all()) all.push_back({p.name, p.tensor});
  io::write_safetensors(path, all, {{"format", "heddle"}, {kChecksumKey, checksum("", all)}});
}

void check_weights(const io::SafetensorsFile& file) {
  check_sum(file, [&file](const io::TensorEntry& entry) { return file.load(entry.name); });
}

nn::ParameterSource WeightSource::source() {
  return [this](const std::string& name, const Shape& shape) {
    asked_for_.push_back(name);
    Tensor tensor = file_.load(name);
    // The model would refuse it too, without knowing which file it came from.
    if (tensor.shape() != shape)
      fail(ErrorCode::shape_mismatch, file_.path(),
           "tensor " + name + " does not fit the recipe's model", to_string(shape),
           to_string(tensor.shape()));
    return tensor;
  };
}

void WeightSource::finish() const {
  for (const io::TensorEntry& entry : file_.entries())
    if (std::ranges::find(asked_for_, entry.name) == asked_for_.end())
      fail(ErrorCode::io, file_.path(), "tensor " + entry.name + " belongs to no parameter");
}

}  // namespace heddle::train
