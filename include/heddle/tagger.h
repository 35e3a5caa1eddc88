// A trained model that tags words, inside a program.
//
//   const heddle::Tagger model("runs/pos-tagger");
//   const heddle::Words words = heddle::words_of("The cat sat .");
//   const std::vector<heddle::Prediction> tags = model.tag(words);
//   for (std::size_t i = 0; i < words.size(); ++i)
//     std::cout << words[i] << "\t" << tags[i].label << "\n";
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/prediction.h"
#include "heddle/trained_model.h"

namespace heddle {

using Words = std::vector<std::string_view>;  // of one sentence; the text must outlive them

// The pieces of the sentence between ASCII white space.
Words words_of(std::string_view sentence);

// A handle, as TrainedModel is. Every function throws heddle::Error.
class Tagger {
 public:
  // As TrainedModel does; an Error names the task when the model is not one that tags.
  explicit Tagger(const std::string& directory, DType precision = DType::f32,
                  Device device = Device::cpu);
  explicit Tagger(TrainedModel model);

  // The tag of each word. Errors name the sentence, from 1, as a line.
  std::vector<std::vector<Prediction>> tag(std::span<const Words> sentences,
                                           const PredictionOptions& options = {}) const;
  std::vector<Prediction> tag(const Words& sentence) const;

  const std::vector<std::string>& labels() const;  // by id
  const TrainedModel& model() const { return model_; }

 private:
  TrainedModel model_;
};

}  // namespace heddle
