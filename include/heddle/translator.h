// A trained translation model, for use inside a program: texts into other texts, by beam search
// over many at once.
//
//   const heddle::Translator model("runs/transformer-translate");
//   std::cout << model.translate("A man is reading.").text << "\n";
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/generation.h"
#include "heddle/texts.h"
#include "heddle/trained_model.h"

namespace heddle {

struct TranslationOptions {
  BeamOptions beam = {};
  std::int64_t batch = 64;  // texts at a time, at most; of similar length
  // Limit on the tokens of a translation: ratio · tokens of its source + extra, and not more than
  // the model has positions.
  double longest_ratio = 2;
  std::int64_t longest_extra = 10;
  // Called after each batch with the number of texts done and the total.
  std::function<void(std::size_t, std::size_t)> progress = {};
};

struct Translation {
  std::string text;                // the best; empty for a text of nothing but white space
  std::int64_t source_tokens = 0;  // end token included
  std::vector<Hypothesis> best;    // n-best, the best first; none for such a text
};

// A handle, as TrainedModel is. Every function throws heddle::Error.
class Translator {
 public:
  // As TrainedModel does; an Error names the task when the model is not one that translates.
  explicit Translator(const std::string& directory, DType precision = DType::f32,
                      Device device = Device::cpu);
  explicit Translator(TrainedModel model);

  // Results are in the order of the texts. They do not depend on which texts are translated
  // together, except for the rounding of sums. An Error names the line, from 1, of a text that the
  // tokenizer refuses or that has more tokens than learned positions.
  std::vector<Translation> translate(const Texts& texts,
                                     const TranslationOptions& options = {}) const;
  std::vector<Translation> translate(std::initializer_list<std::string_view> texts,
                                     const TranslationOptions& options = {}) const {
    return translate(Texts(texts), options);
  }
  Translation translate(std::string_view text, const TranslationOptions& options = {}) const;

  const TrainedModel& model() const { return model_; }

 private:
  TrainedModel model_;
};

}  // namespace heddle
