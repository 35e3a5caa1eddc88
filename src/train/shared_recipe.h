// The recipe of a run on several ranks: read by the first, the same for all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "recipe/recipe.h"

namespace heddle::train {

struct SharedRecipe {
  recipe::Recipe recipe;
  std::optional<std::int64_t> chosen_parts = {};  // train.parts, where the recipe did not say
};

// `load` reads the recipe with overrides beside its own; rank 0 alone calls it. Where the recipe
// has no train.parts, the run in `resumed` (empty: a new one) says them; a new run on several ranks
// gets recipe::usual_parts(). Error where a run that was begun without them should go on with
// several ranks.
SharedRecipe share_recipe(
    distributed::Communicator& group,
    const std::function<recipe::Recipe(const std::vector<std::string>& overrides)>& load,
    const std::string& resumed);

}  // namespace heddle::train
