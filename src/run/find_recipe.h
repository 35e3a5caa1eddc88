// Recipes by what people call them.
#pragma once

#include <string>

namespace heddle::run {

// The file that is meant by a path, by the directory of a run (the recipe in it), or by the name of
// a recipe that ships (recipe/shipped/shipped.h). Errors name the nearest of these, and all there
// are.
std::string recipe_file(const std::string& given);

// The file of a recipe that ships, by its name alone; Error as above.
std::string shipped_file(const std::string& name);

}  // namespace heddle::run
