// Recipes by what the command line calls them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace heddle::cli {

struct RecipeArguments {
  std::string given;  // a path, the directory of a run, or the name of a recipe that ships
  std::string named;  // --recipe: always a name
  std::vector<std::string> set;
};

// RECIPE, --recipe NAME and --set KEY=VALUE.
void declare_recipe(CLI::App& command, RecipeArguments& arguments);

// --device, which is train.device.
void declare_device(CLI::App& command, RecipeArguments& arguments);

// The file that is meant. A directory of a run stands for the recipe in it; what is no path is
// looked for among the recipes that ship (recipe/shipped/shipped.h). Errors name the nearest one,
// and all there are.
std::string recipe_file(const RecipeArguments& arguments);

// The same for a recipe that another option names (--also).
std::string recipe_file(const std::string& given);

// "char-gpt": what a run of it is called unless somebody says otherwise.
std::string recipe_name(const RecipeArguments& arguments);

}  // namespace heddle::cli
