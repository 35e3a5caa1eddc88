#include "heddle/classifier.h"

#include <utility>

#include "generate/tasks/image_size.h"
#include "generate/tasks/predict.h"
#include "heddle/error.h"
#include "run/load_run.h"

namespace heddle {

namespace {

const data::Codec& codec_of(const TrainedModel& model) { return *run::loaded(model).codec; }

}  // namespace

Classifier::Classifier(const std::string& directory, DType precision, Device device)
    : Classifier(TrainedModel(directory, precision, device)) {}

Classifier::Classifier(TrainedModel model) : model_(std::move(model)) {
  run::require_task(model_, model::Task::classify);
}

bool Classifier::reads_images() const { return codec_of(model_).image().has_value(); }

std::vector<Prediction> Classifier::classify(const Texts& texts,
                                             const PredictionOptions& options) const {
  if (reads_images())
    fail(ErrorCode::invalid_argument, "classify", "model", "one that classifies texts",
         "one that classifies images");
  return generate::classify_texts(model_.network(), codec_of(model_), texts.all(), options,
                                  model_.precision());
}

Prediction Classifier::classify(std::string_view text) const {
  return std::move(classify(Texts{text}).front());
}

std::vector<Prediction> Classifier::classify(std::span<const NamedImage> images,
                                             const PredictionOptions& options) const {
  std::vector<Tensor> pixels;
  pixels.reserve(images.size());
  for (const NamedImage& image : images) {
    if (reads_images()) generate::check_size(image, *codec_of(model_).image());
    pixels.push_back(image.pixels);
  }
  return generate::classify_images(model_.network(), codec_of(model_), pixels, options,
                                   model_.precision());
}

const std::vector<std::string>& Classifier::labels() const { return codec_of(model_).labels(); }

std::int64_t Classifier::longest() const { return codec_of(model_).max_tokens(); }

}  // namespace heddle
