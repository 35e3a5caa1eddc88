#include "train/checkpoint.h"

#include <algorithm>

#include "heddle/error.h"
#include "run/checksum.h"

namespace heddle::train {

namespace {

constexpr const char* kOptimizerPrefix = "optimizer.";

// Everything a checkpoint holds, by its name there. The tensors share storage with the originals.
std::vector<io::NamedTensor> contents(const nn::Parameters& parameters,
                                      const std::vector<nn::Parameter>& optimizer) {
  std::vector<io::NamedTensor> all;
  for (const nn::Parameter& p : parameters.all()) all.push_back({p.name, p.tensor});
  for (const nn::Parameter& p : optimizer) all.push_back({kOptimizerPrefix + p.name, p.tensor});
  return all;
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

void save_checkpoint(const std::string& path, const nn::Parameters& parameters,
                     const std::vector<nn::Parameter>& optimizer, const run::TrainState& state) {
  const std::vector<io::NamedTensor> all = contents(parameters, optimizer);
  const std::string text = to_json(state);
  io::write_safetensors(path, all,
                        {{"format", "heddle"},
                         {run::kStateKey, text},
                         {run::kChecksumKey, run::checksum(text, all)}});
}

run::TrainState load_checkpoint(const std::string& path, nn::Parameters& parameters,
                                const std::vector<nn::Parameter>& optimizer) {
  const io::SafetensorsFile file(path);
  const run::TrainState state = run::state_of(file);
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
  run::check_sum(file, [&named](const io::TensorEntry& entry) { return named(entry)->tensor; });
  return state;
}

}  // namespace heddle::train
