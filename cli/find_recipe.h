// Recipes by what the command line calls them.
#pragma once

#include <string>

namespace heddle::cli {

// "rope-gqa" -> the path of rope-gqa.toml: beside the program as installed
// (../share/heddle/recipes) or as built (recipes/ of the source tree), or in ./recipes. Error
// naming the ones there are.
std::string find_recipe(const std::string& name);

// The directory of a run stands for the recipe in it; any other path is the recipe's own.
std::string recipe_file(const std::string& path);

}  // namespace heddle::cli
