#include "base/memory_error.h"
#include "data/dataset.h"
#include "data/loading.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

std::unique_ptr<Dataset> open_files(const LoadRequest& request) {
  switch (request.task) {
    case model::Task::language:
      return has_chat(request.config) ? open_chat(request) : open_text(request);
    case model::Task::masked: return open_text(request);
    case model::Task::translate: return open_pairs(request);
    case model::Task::tag: return open_tags(request);
    case model::Task::classify: break;
    case model::Task::embed:
      fail(ErrorCode::unsupported, "data", "task of the model", "one that is trained on data",
           model::to_string(request.task));
  }
  return request.kind == model::Kind::vit ? open_images(request) : open_labelled(request);
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
  const LoadRequest request{config, kind, task, options};
  return with_stage("reading the data", [&] { return open_files(request); });
}

}  // namespace heddle::data
