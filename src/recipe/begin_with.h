// The model that `train.from` names: a run, or a model that others trained (a directory with a
// config.json, a .gguf file). A recipe may leave to it what the model is and how text becomes
// tokens.
#pragma once

#include <memory>
#include <string>

#include "data/codec/codec.h"
#include "io/toml/toml.h"

namespace heddle::recipe {

// Its table [model] as a recipe has it, and nothing else. `where` is the place of the key, for the
// Error where there is no such run or model.
io::TomlDocument model_of(const std::string& from, const std::string& where);

std::shared_ptr<const data::Codec> codec_of(const std::string& from, const std::string& where);

}  // namespace heddle::recipe
