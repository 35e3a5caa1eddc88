#include "heddle/tagger.h"

#include <utility>

#include "generate/tasks/predict.h"
#include "run/load_run.h"

namespace heddle {

Tagger::Tagger(const std::string& directory, DType precision, Device device)
    : Tagger(TrainedModel(directory, precision, device)) {}

Tagger::Tagger(TrainedModel model) : model_(std::move(model)) {
  run::require_task(model_, model::Task::tag);
}

std::vector<std::vector<Prediction>> Tagger::tag(std::span<const Words> sentences,
                                                 const PredictionOptions& options) const {
  return generate::tag_sentences(model_.network(), *run::loaded(model_).codec, sentences, options,
                                 model_.precision());
}

std::vector<Prediction> Tagger::tag(const Words& sentence) const {
  return std::move(tag(std::span(&sentence, 1)).front());
}

const std::vector<std::string>& Tagger::labels() const {
  return run::loaded(model_).codec->labels();
}

}  // namespace heddle
