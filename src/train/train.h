// Training a recipe from a program: what `heddle train` does, with callbacks.
//
//   heddle::train::Hooks hooks;
//   hooks.on_step = [](const heddle::train::StepReport& r) {
//     std::cout << "step " << r.step << "  loss " << r.loss << "\n";
//   };
//   heddle::train::run("my.toml", "runs/mine", {.set = {"train.steps=500"}, .hooks = hooks});
//   const heddle::LanguageModel model("runs/mine");
#pragma once

#include <string>
#include <vector>

#include "train/hooks.h"

namespace heddle::train {

struct RunOptions {
  std::vector<std::string> set = {};  // keys of the recipe, as after --set: "train.steps=500"
  // Go on with the run in the directory, at its newest checkpoint. The recipe must be the run's.
  bool resume = false;
  Hooks hooks = {};
};

// Trains into `directory`, which must not hold a run already unless it is resumed. `recipe` is a
// TOML file, the directory of a run (the recipe in it), or the name of a recipe that ships with the
// program. Same recipe, same bits. Throws Error: what is wrong with the recipe, by file, line and
// key; with ErrorCode::failed a loss that is not finite. A run that ends before it saved anything
// leaves no directory.
Outcome run(const std::string& recipe, const std::string& directory,
            const RunOptions& options = {});

}  // namespace heddle::train
