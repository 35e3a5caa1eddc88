#include "run/weights.h"

#include <algorithm>

#include "heddle/error.h"
#include "run/checksum.h"

namespace heddle::run {

void save_weights(const std::string& path, const nn::Parameters& parameters) {
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

}  // namespace heddle::run
