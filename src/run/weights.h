// model.safetensors of a run: the weights alone, for use.
#pragma once

#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "nn/parameters.h"

namespace heddle::run {

void save_weights(const std::string& path, const nn::Parameters& parameters);

// Reads the weights once and throws Error when the file has a checksum and it is not theirs.
void check_weights(const io::SafetensorsFile& file);

// Gives a model the weights of a file as it is built, after check_weights(). Call finish()
// afterwards: a tensor of the file that no parameter asked for is an Error.
class WeightSource {
 public:
  explicit WeightSource(const std::string& path) : file_(path) { check_weights(file_); }

  nn::ParameterSource source();
  void finish() const;
  const io::SafetensorsFile& file() const { return file_; }

 private:
  io::SafetensorsFile file_;
  std::vector<std::string> asked_for_;
};

}  // namespace heddle::run
