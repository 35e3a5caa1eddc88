// The weights of a pretrained model by the names that its files give them.
#pragma once

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
  // On the CPU, of a floating-point type. Throws Error naming file and tensor.
  virtual Tensor load(std::string_view name) const = 0;
  virtual std::string type(std::string_view name) const = 0;     // "BF16", "Q4_K", for people
  virtual std::uint64_t bytes(std::string_view name) const = 0;  // in the file
  virtual std::string where() const = 0;  // what errors name: the file, or the list of shards
};

// model.safetensors of a directory, or the shards that model.safetensors.index.json lists. Where
// there are only PyTorch's .bin files, the Error says why these are not read and what to do.
std::unique_ptr<WeightFiles> safetensors_of(const std::string& directory);
std::unique_ptr<WeightFiles> weights_of(std::shared_ptr<const io::GgufFile> file);

}  // namespace heddle::pretrained
