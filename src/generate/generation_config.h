// How the people who trained a model want it to write: generation_config.json, beside its weights.
#pragma once

#include <string>

#include "heddle/generation.h"

namespace heddle::generate {

// The options that the file asks for, and otherwise the usual ones; the usual ones where there is
// no file. A setting that Heddle does not have is an Error that names it: the text would not be
// what those people meant.
GenerationOptions read_generation_config(const std::string& directory);

}  // namespace heddle::generate
