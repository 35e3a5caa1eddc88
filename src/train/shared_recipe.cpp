#include "train/shared_recipe.h"

#include <utility>

#include "heddle/error.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"

namespace heddle::train {

namespace {

recipe::Recipe with_parts(
    const std::function<recipe::Recipe(const std::vector<std::string>&)>& load,
    std::int64_t parts) {
  return load({"train.parts=" + std::to_string(parts)});
}

}  // namespace

SharedRecipe share_recipe(
    distributed::Communicator& group,
    const std::function<recipe::Recipe(const std::vector<std::string>& overrides)>& load,
    const std::string& resumed) {
  SharedRecipe shared;
  group.together("reading the recipe", [&] {
    if (!group.is_first()) return;
    shared.recipe = load({});
    if (shared.recipe.train.parts) return;
    if (!resumed.empty() && run::is_run(resumed)) {
      const auto before = run::recipe_begun_with({resumed}).train.parts;
      if (before) shared.recipe = with_parts(load, *before);
      if (!before && !group.alone())
        fail(ErrorCode::invalid_argument, resumed,
             "was begun without train.parts: its sums have the order of one process",
             "one process to go on with it; a run that is to move between numbers of ranks begins "
             "with --set train.parts=8",
             std::to_string(group.size()) + " ranks");
      return;
    }
    if (group.alone()) return;
    shared.chosen_parts = recipe::usual_parts(shared.recipe.train, group.size());
    shared.recipe = with_parts(load, *shared.chosen_parts);
  });
  const std::string toml = group.broadcast_text(shared.recipe.toml, 0, "the recipe");
  if (!group.is_first()) shared.recipe = recipe::recipe_of_text(toml, "the recipe of rank 0");
  return shared;
}

}  // namespace heddle::train
