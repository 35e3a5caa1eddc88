// The weights of a pretrained model by the names that its files give them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::io {
class GgufFile;
}

namespace heddle::pretrained {

class WeightFiles {
 public:
  virtual ~WeightFiles() = default;
  WeightFiles() = default;
  WeightFiles(const WeightFiles&) = delete;
  WeightFiles& operator=(const WeightFiles&) = delete;

  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  // On the CPU, of a floating-point type: the one of the file, or, where that is no type to compute
  // with, f32. A large matrix may come in bf16 at once where that is `wanted`. Throws Error naming
  // file and tensor.
  virtual Tensor load(std::string_view name, DType wanted) const = 0;
  // One of those that a tensor holds along its first dimension, as an expert of all.
  virtual Tensor load_one(std::string_view name, std::int64_t place) const;
  virtual Shape shape(std::string_view name) const = 0;
  virtual std::string type(std::string_view name) const = 0;     // "BF16", "Q4_K", for people
  virtual std::uint64_t bytes(std::string_view name) const = 0;  // in the file
  virtual std::string where() const = 0;  // what errors name: the file, or the list of shards
};

// Throws Error unless a tensor of this shape holds several, and one at this place.
void require_one_of(const std::string& where, std::string_view name, const Shape& shape,
                    std::int64_t place);

// The type in which the weights are best held where nobody says another one: bf16 where most of
// their bytes are bf16, or quantised, which rounds them more than bf16 does; else f32.
DType natural_type(const WeightFiles& files);

// model.safetensors of a directory, or the shards that model.safetensors.index.json lists. Where
// there are only PyTorch's .bin files, the Error says why these are not read and what to do.
std::unique_ptr<WeightFiles> safetensors_of(const std::string& directory);
std::unique_ptr<WeightFiles> weights_of(std::shared_ptr<const io::GgufFile> file);

}  // namespace heddle::pretrained
