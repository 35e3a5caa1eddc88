#include "nn/save.h"

#include <algorithm>
#include <vector>

#include "io/safetensors/safetensors.h"

namespace heddle::nn {

void save(const std::string& path, const Parameters& parameters) {
  std::vector<io::NamedTensor> tensors;
  tensors.reserve(parameters.all().size());
  for (const Parameter& p : parameters.all()) tensors.push_back({p.name, p.tensor.to(Device::cpu)});
  io::write_safetensors(path, tensors, {{"format", "heddle"}});
}

void load(const std::string& path, Parameters& parameters) {
  const io::SafetensorsFile file(path);
  const std::vector<Parameter>& all = parameters.all();
  for (const io::TensorEntry& entry : file.entries())
    if (std::ranges::find(all, entry.name, &Parameter::name) == all.end())
      fail(ErrorCode::io, path, "tensor " + entry.name + " belongs to no parameter",
           "the parameters of this model");
  std::vector<Tensor> values;
  values.reserve(all.size());
  for (const Parameter& p : all) {
    values.push_back(file.load(p.name));
    const Tensor& found = values.back();
    if (found.shape() != p.tensor.shape() || found.dtype() != p.tensor.dtype())
      fail(ErrorCode::io, path, "tensor " + p.name, p.tensor.describe(), found.describe());
  }
  for (std::size_t i = 0; i < values.size(); ++i) overwrite(parameters.all()[i].tensor, values[i]);
}

}  // namespace heddle::nn
