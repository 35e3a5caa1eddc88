// One `heddle train`: from a recipe to a run's directory.
//
//   Job job = Job::begin(recipe, "runs/small");     or Job::resume(...)
//   Outcome outcome = job.run(hooks);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "distributed/communicator.h"
#include "model/model.h"
#include "plan/plan_run.h"
#include "recipe/recipe.h"
#include "run/run_directory.h"
#include "train/trainer.h"

namespace heddle::train {

class Job {
 public:
  // A new run. Error when something is at `directory` already (is_taken()). `before_writing` is
  // called when the data is read and the model is built, before anything is written. A job that
  // ends before it saved anything takes its directory back, so that a second try finds it free.
  //
  // Of a group all ranks call it, with the same recipe, which has train.parts; rank 0 alone writes.
  // `reading` is told how far data is that takes long to read.
  static Job begin(recipe::Recipe recipe, const std::string& directory,
                   const std::function<void()>& before_writing = {},
                   distributed::Communicator* group = nullptr,
                   const data::ReadingSink& reading = {});

  // Goes on with a run, at its newest checkpoint or, if it was killed before the first one, from
  // the beginning. The recipe must be the run's (check_resumable()).
  // The ranks of a group read the directory, too.
  static Job resume(recipe::Recipe recipe, const std::string& directory,
                    distributed::Communicator* group = nullptr,
                    const data::ReadingSink& reading = {});

  // Begins a run or goes on with it, on data that is open already: for many runs on the same data.
  // It must be what the recipe's [data] gives.
  static Job open(recipe::Recipe recipe, const std::string& directory,
                  std::shared_ptr<const data::Dataset> data);

  Job(Job&&) = default;
  ~Job();

  // Writes the forecast of the run to its directory, for the report (plan::write_plan()), unless an
  // earlier session left it there; a damaged one is reported and replaced. The probe runs at most
  // once: its measurement is returned.
  std::optional<plan::MachineSpeed> write_plan(
      const plan::MachineProbe& probe,
      const std::function<void(const std::string& sentence)>& on_damage);

  Outcome run(Hooks hooks);

  // Whether there is anything to go on with: a checkpoint, weights or a line of the log.
  bool has_saved() const { return run::is_taken(paths().directory); }
  // Whether this process is the one that writes: rank 0.
  bool writes() const { return directory_ != nullptr; }

  const recipe::Recipe& recipe() const { return recipe_; }
  const model::Model& model() const { return *model_; }
  const data::Dataset& data() const { return *data_; }
  const plan::RunPlan& plan() const { return plan_; }
  const run::RunPaths& paths() const { return paths_; }
  // Differences from the run it was fine-tuned from, one sentence each.
  const std::vector<std::string>& adopted() const { return adopted_; }

 private:
  Job(recipe::Recipe recipe, const std::string& directory, distributed::Communicator* group)
      : recipe_(std::move(recipe)), paths_{directory}, group_(group) {}

  bool is_first() const { return group_ == nullptr || group_->is_first(); }

  void open_data(std::shared_ptr<const data::Codec> codec, const data::ReadingSink& reading);
  void take_data(std::shared_ptr<const data::Dataset> data);
  void build();
  void adopt();
  void settle();

  recipe::Recipe recipe_;
  bool is_new_ = false;  // begun here
  run::RunPaths paths_;
  distributed::Communicator* group_;
  std::unique_ptr<run::RunDirectory> directory_;
  std::shared_ptr<const data::Dataset> data_;
  plan::RunPlan plan_;
  std::unique_ptr<model::Model> model_;
  std::vector<std::string> adopted_;
};

}  // namespace heddle::train
