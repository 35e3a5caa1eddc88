// The label of a text, an image or a word, as returned by Classifier and Tagger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct Prediction {
  std::int32_t id = -1;    // of the label; -1: a text of nothing but white space has none
  std::string label = {};  // its name
  double probability = 0;  // of the label
  std::vector<double> probabilities;  // of all labels, by id
  bool cut = false;                   // the text was too long: its beginning was classified
};

struct PredictionOptions {
  std::int64_t batch = 64;  // texts, images or sentences at a time, at most
};

}  // namespace heddle
