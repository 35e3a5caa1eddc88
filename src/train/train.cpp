#include "train/train.h"

#include "run/find_recipe.h"
#include "run/recipe_file.h"
#include "train/job.h"

namespace heddle::train {

Outcome run(const std::string& recipe, const std::string& directory, const RunOptions& options) {
  recipe::Recipe read = run::load_recipe(run::recipe_file(recipe), options.set);
  Job job = options.resume ? Job::resume(std::move(read), directory)
                           : Job::begin(std::move(read), directory);
  return job.run(options.hooks);
}

}  // namespace heddle::train
