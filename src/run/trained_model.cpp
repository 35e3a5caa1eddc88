#include "heddle/trained_model.h"

#include "heddle/error.h"
#include "run/load_run.h"

namespace heddle {

struct TrainedModel::Parts {
  run::LoadedRun run;
  DType precision;
};

TrainedModel::TrainedModel(const std::string& directory, DType precision, Device device,
                           std::optional<DType> weights) {
  if (precision != DType::f32 && precision != DType::bf16 && precision != DType::f64)
    fail(ErrorCode::invalid_argument, directory, "precision", "f32, bf16 or f64",
         to_string(precision));
  if (precision == DType::f64 && weights)
    fail(ErrorCode::invalid_argument, directory, "type of the weights",
         "none beside precision f64, which holds them in f64", to_string(*weights));
  if (weights && *weights != DType::f32 && *weights != DType::bf16)
    fail(ErrorCode::invalid_argument, directory, "type of the weights", "f32 or bf16",
         to_string(*weights));
  const run::UseOptions use{.precision = precision, .device = device, .weights = weights};
  parts_ = std::make_shared<const Parts>(Parts{run::load_model(directory, use), precision});
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
std::int64_t TrainedModel::weight_bytes() const {
  std::int64_t sum = 0;
  for (const nn::Parameter& p : network().parameters().all())
    sum += static_cast<std::int64_t>(p.tensor.bytes());
  return sum;
}
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
