#include "train/job.h"

#include <utility>

#include "base/memory_error.h"
#include "heddle/error.h"
#include "train/fine_tune.h"
#include "train/plan_run.h"
#include "train/recipe_file.h"

namespace heddle::train {

// Everything that can be refused is looked at before there is a directory: a second try need not
// clean up after the first.
Job Job::begin(Recipe recipe, const std::string& directory,
               const std::function<void()>& before_writing) {
  const auto refuse_taken = [&] {
    fail(ErrorCode::invalid_argument, directory, "is there already",
         "a new directory (--out), or --resume to go on with the run in it");
  };
  if (is_taken(directory)) refuse_taken();
  Job job(std::move(recipe));
  job.open_data(nullptr);
  job.build();
  job.adopt();
  if (before_writing) before_writing();
  job.directory_ = std::make_unique<RunDirectory>(directory);
  if (is_taken(directory)) refuse_taken();  // by another process, meanwhile
  job.directory_->begin_anew();             // what one left that died before its first step
  job.settle();
  return job;
}

Job Job::resume(Recipe recipe, const std::string& directory) {
  check_is_directory(directory);
  Job job(std::move(recipe));
  job.directory_ = std::make_unique<RunDirectory>(directory);
  // Without a recipe it was killed before it was a run.
  const bool is_old = is_run(directory);
  if (is_old) check_resumable(recipe_begun_with(job.paths()), job.recipe_);
  job.open_data(is_old ? data::Codec::load(directory) : nullptr);
  job.build();
  if (!job.directory_->newest_checkpoint()) job.adopt();
  job.settle();
  return job;
}

Job Job::open(Recipe recipe, const std::string& directory,
              std::shared_ptr<const data::Dataset> data) {
  Job job(std::move(recipe));
  job.take_data(std::move(data));
  job.build();
  job.directory_ = std::make_unique<RunDirectory>(directory);
  if (is_run(directory)) check_resumable(recipe_begun_with(job.paths()), job.recipe_);
  if (!job.directory_->newest_checkpoint()) job.adopt();
  job.settle();
  return job;
}

void Job::open_data(std::shared_ptr<const data::Codec> codec) {
  data::OpenOptions options;
  options.test = codec == nullptr;  // a new codec is made of all there is
  options.codec = std::move(codec);
  take_data(train::open_data(recipe_, options));
}

void Job::take_data(std::shared_ptr<const data::Dataset> data) {
  data_ = std::move(data);
  take_sizes(recipe_, *data_);
  with_places(recipe_, [&] { evaluation_rhythm(recipe_.train, *data_); });
}

void Job::build() {
  check_fits(recipe_, *data_);
  model::BuildOptions options;
  options.seed = recipe_.train.seed;
  model_ =
      with_stage("building the model", [&] { return model::build_model(recipe_.model, options); });
}

void Job::adopt() {
  if (recipe_.train.from.empty()) return;
  adopted_ = adopt_run(recipe_.train.from, {recipe_, data_->codec()}, model_->parameters());
}

// The recipe comes last: with it, it is a run.
void Job::settle() {
  if (!is_run(paths().directory)) data_->codec().save(paths().directory);
  write_run_recipe(paths(), recipe_);
}

Outcome Job::run(Hooks hooks) {
  Trainer trainer(*model_, *data_, recipe_.train, directory_.get(), std::move(hooks));
  trainer.keep_recipe(recipe_.toml);
  trainer.resume();
  return trainer.run();
}

}  // namespace heddle::train
