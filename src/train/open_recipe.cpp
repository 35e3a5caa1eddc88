#include "train/open_recipe.h"

#include "run/find_recipe.h"
#include "run/recipe_file.h"

namespace heddle::train {

OpenRecipe open_recipe(const std::string& recipe, const std::vector<std::string>& set) {
  recipe::Recipe read = run::load_recipe(run::recipe_file(recipe), set);
  OpenRecipe open;
  open.data = recipe::open_data(read);
  recipe::take_sizes(read, *open.data);
  open.config = read.train;
  open.model =
      model::build_model(read.model, {.seed = read.train.seed, .device = read.train.device});
  return open;
}

}  // namespace heddle::train
