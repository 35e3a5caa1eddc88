// The images that a model reads, by preprocessor_config.json.
#pragma once

#include <string>

#include "data/codec/codec.h"
#include "model/config.h"

namespace heddle::pretrained {

// Throws Error naming the file, or the key whose value is not understood. The size of the images
// must be the configuration's.
data::ImageFacts read_image_facts(const std::string& directory, const model::ModelConfig& config);

// The size that the file asks for, where there is one, instead of the configuration's: of families
// whose positions are interpolated.
void take_image_size(const std::string& directory, model::ModelConfig& config);

}  // namespace heddle::pretrained
