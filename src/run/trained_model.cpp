#include "heddle/trained_model.h"

#include "heddle/error.h"
#include "run/load_run.h"

namespace heddle {

struct TrainedModel::Parts {
  run::LoadedRun run;
  DType precision;
};

TrainedModel::TrainedModel(const std::string& directory, DType precision, Device device) {
  if (precision != DType::f32 && precision != DType::bf16)
    fail(ErrorCode::invalid_argument, directory, "precision", "f32 or bf16", to_string(precision));
  parts_ = std::make_shared<const Parts>(Parts{run::load_model(directory, device), precision});
}

const TrainedModel::Parts& TrainedModel::parts() const {
  if (!parts_)
    fail(ErrorCode::invalid_argument, "model", "was moved to another object",
         "a model that is here");
  return *parts_;
}

const std::string& TrainedModel::directory() const { return parts().run.directory; }
DType TrainedModel::precision() const { return parts().precision; }
model::Task TrainedModel::task() const { return network().config().task; }
std::int64_t TrainedModel::parameters() const { return network().parameters().count(); }
const model::Model& TrainedModel::network() const { return *parts().run.model; }

namespace run {

const LoadedRun& loaded(const TrainedModel& model) { return model.parts().run; }

void require_task(const TrainedModel& model, model::Task task) {
  if (model.task() != task)
    fail(ErrorCode::invalid_argument, model.directory(), "task of the model", to_string(task),
         to_string(model.task()));
}

}  // namespace run

}  // namespace heddle
