#include "base/memory_error.h"
#include "data/dataset.h"
#include "data/job.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

std::unique_ptr<Dataset> open_files(const Job& job) {
  switch (job.task) {
    case model::Task::language: return has_chat(job.config) ? open_chat(job) : open_text(job);
    case model::Task::masked: return open_text(job);
    case model::Task::translate: return open_pairs(job);
    case model::Task::tag: return open_tags(job);
    case model::Task::classify: break;
    case model::Task::embed:
      fail(ErrorCode::unsupported, "data", "task of the model", "one that is trained on data",
           model::to_string(job.task));
  }
  return job.kind == model::Kind::vit ? open_images(job) : open_labelled(job);
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const DataConfig& config, model::Kind kind, model::Task task,
                                      const OpenOptions& options) {
  const bool has_codec = options.codec != nullptr;
  if (!has_codec && !(options.training && options.validation && options.test))
    fail(ErrorCode::invalid_argument, "data", "splits are left out",
         "a codec, which is made of them", "none");
  if (has_codec && options.codec->task() != task)
    fail(ErrorCode::invalid_argument, "data", "the codec is for another task",
         model::to_string(task), model::to_string(options.codec->task()));
  validate(config, kind, task, {.codec = !has_codec, .training = options.training});
  const Job job{config, kind, task, options};
  return with_stage("reading the data", [&] { return open_files(job); });
}

}  // namespace heddle::data
