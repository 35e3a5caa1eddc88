#include "train/job.h"

#include <utility>

#include "base/memory_error.h"
#include "heddle/error.h"
#include "run/recipe_file.h"
#include "tensor/engine.h"
#include "train/fine_tune/fine_tune.h"

namespace heddle::train {

// Everything that can be refused is looked at before there is a directory: a second try need not
// clean up after the first.
Job Job::begin(recipe::Recipe recipe, const std::string& directory,
               const std::function<void()>& before_writing, distributed::Communicator* group,
               const data::ReadingSink& reading) {
  const auto refuse_taken = [&] {
    fail(ErrorCode::invalid_argument, directory, "is there already",
         "a new directory (--out), or --resume to go on with the run in it");
  };
  Job job(std::move(recipe), directory, group);
  if (job.is_first() && run::is_taken(directory)) refuse_taken();
  job.open_data(nullptr, reading);
  job.build();
  if (!job.is_first()) {  // the trainer brings the weights of rank 0
    if (before_writing) before_writing();
    return job;
  }
  job.adopt();
  if (before_writing) before_writing();
  job.directory_ = std::make_unique<run::RunDirectory>(directory);
  if (run::is_taken(directory)) refuse_taken();  // by another process, meanwhile
  job.directory_->begin_anew();                  // what one left that died before its first step
  job.is_new_ = true;
  job.settle();
  return job;
}

Job::~Job() {
  try {
    if (is_new_ && directory_ && !has_saved()) directory_->discard();
  } catch (...) {  // files that are left are no run: the next begin() clears them away
  }
}

Job Job::resume(recipe::Recipe recipe, const std::string& directory,
                distributed::Communicator* group, const data::ReadingSink& reading) {
  run::check_is_directory(directory);
  Job job(std::move(recipe), directory, group);
  if (job.is_first()) job.directory_ = std::make_unique<run::RunDirectory>(directory);
  // Without a recipe it was killed before it was a run.
  const bool is_old = run::is_run(directory);
  if (is_old) recipe::check_resumable(run::recipe_begun_with(job.paths()), job.recipe_);
  job.open_data(is_old ? data::Codec::load(directory) : nullptr, reading);
  job.build();
  if (!job.is_first()) return job;
  if (!job.directory_->newest_checkpoint()) job.adopt();
  job.settle();
  return job;
}

Job Job::open(recipe::Recipe recipe, const std::string& directory,
              std::shared_ptr<const data::Dataset> data) {
  Job job(std::move(recipe), directory, nullptr);
  job.take_data(std::move(data));
  job.build();
  job.directory_ = std::make_unique<run::RunDirectory>(directory);
  if (run::is_run(directory))
    recipe::check_resumable(run::recipe_begun_with(job.paths()), job.recipe_);
  if (!job.directory_->newest_checkpoint()) job.adopt();
  job.settle();
  return job;
}

void Job::open_data(std::shared_ptr<const data::Codec> codec, const data::ReadingSink& reading) {
  data::OpenOptions options;
  options.test = codec == nullptr;  // a new codec is made of all there is
  options.codec = std::move(codec);
  options.reading = reading;
  take_data(recipe::open_data(recipe_, options));
}

void Job::take_data(std::shared_ptr<const data::Dataset> data) {
  data_ = std::move(data);
  recipe::take_sizes(recipe_, *data_);
  recipe::with_places(recipe_, [&] {
    recipe::check_shard(recipe_.train);
    evaluation_rhythm(recipe_.train, *data_);
  });
}

namespace {

// A device that this build or this machine lacks is refused where the recipe names it.
Device available_device(const recipe::Recipe& recipe) {
  const Device device = recipe.train.device;
  try {
    (void)engine_of(device);
  } catch (const Error& e) {
    const std::string key = "train.device";
    fail(e.code(), recipe.places.has(key) ? recipe.places.of(key) : key,
         "key " + key + ": " + e.problem(), e.expected(), e.got());
  }
  return device;
}

}  // namespace

void Job::build() {
  model::BuildOptions options;
  options.seed = recipe_.train.seed;
  options.device = available_device(recipe_);
  plan_ = plan::plan_run(recipe_, plan::batch_shapes(*data_, recipe_.train),
                         group_ == nullptr ? 1 : group_->size());
  plan::check_fits(recipe_, *data_, plan_);
  model_ =
      with_stage("building the model", [&] { return model::build_model(recipe_.model, options); });
}

void Job::adopt() {
  if (recipe_.train.from.empty()) return;
  adopted_ = train::adopt(recipe_.train.from, {recipe_, data_->codec()}, model_->parameters());
}

// The recipe comes last: with it, it is a run.
void Job::settle() {
  if (!run::is_run(paths().directory)) data_->codec().save(paths().directory);
  run::write_run_recipe(paths(), recipe_);
}

std::optional<plan::MachineSpeed> Job::write_plan(
    const plan::MachineProbe& probe, const std::function<void(const std::string&)>& on_damage) {
  if (plan::has_plan(paths().directory, on_damage)) return std::nullopt;
  const plan::Forecast forecast = plan::forecast(recipe_, plan_, data_.get(), probe);
  plan::write_plan(paths().directory, forecast.plan, forecast.process);
  return forecast.machine;
}

Outcome Job::run(Hooks hooks) {
  Trainer trainer(*model_, *data_, recipe_.train, directory_.get(), std::move(hooks), group_);
  trainer.keep_recipe(recipe_.toml);
  trainer.resume();
  return trainer.run();
}

}  // namespace heddle::train
