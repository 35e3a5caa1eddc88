// Recipes that ship with the program, by name.
#pragma once

#include <string>

namespace heddle::cli {

// "rope-gqa" -> the path of rope-gqa.toml: beside the program as installed
// (../share/heddle/recipes) or as built (recipes/ of the source tree), or in ./recipes. Error
// naming the ones there are.
std::string find_recipe(const std::string& name);

}  // namespace heddle::cli
