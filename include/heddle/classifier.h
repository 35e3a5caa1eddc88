// A trained classifier of texts or images, for use inside a program.
//
//   const heddle::Classifier reviews("runs/reviews");
//   std::cout << reviews.classify("what a film").label << "\n";
//
//   const heddle::Classifier clothes("runs/vit-fashion");
//   for (const heddle::Prediction& p : clothes.classify(heddle::read_images("shoe.png")))
//     std::cout << p.label << " " << p.probability << "\n";
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/images.h"
#include "heddle/prediction.h"
#include "heddle/texts.h"
#include "heddle/trained_model.h"

namespace heddle {

// A handle, as TrainedModel is. Every function throws heddle::Error.
class Classifier {
 public:
  // As TrainedModel does; an Error names the task when the model is not one that classifies.
  explicit Classifier(const std::string& directory, DType precision = DType::f32,
                      Device device = Device::cpu);
  explicit Classifier(TrainedModel model);

  bool reads_images() const;  // or texts

  // Equal probabilities: the label with the lower id wins. Texts longer than longest() are cut, as
  // they were in training. Throws Error for a model of images.
  std::vector<Prediction> classify(const Texts& texts, const PredictionOptions& options = {}) const;
  std::vector<Prediction> classify(std::initializer_list<std::string_view> texts,
                                   const PredictionOptions& options = {}) const {
    return classify(Texts(texts), options);
  }
  Prediction classify(std::string_view text) const;

  // Images must have the size the model was trained on: an Error names the one that does not. Grey
  // images are fine for a colour model. Throws Error for a model of texts.
  std::vector<Prediction> classify(std::span<const NamedImage> images,
                                   const PredictionOptions& options = {}) const;

  const std::vector<std::string>& labels() const;  // by id
  std::int64_t longest() const;                    // tokens of a text that are read
  const TrainedModel& model() const { return model_; }

 private:
  TrainedModel model_;
};

}  // namespace heddle
