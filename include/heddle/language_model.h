// A trained language model inside a program: opens what `heddle train` wrote and uses it.
//
//   const heddle::LanguageModel model("runs/char-gpt");
//   std::cout << model.generate("In the beginning", {.tokens = 100}).text() << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/generation.h"
#include "heddle/tensor.h"
#include "heddle/trained_model.h"

namespace heddle {

// A handle, as TrainedModel is. Every function throws heddle::Error.
class LanguageModel {
 public:
  // As TrainedModel does; an Error names the task when the model is not one that writes text.
  explicit LanguageModel(const std::string& directory, DType precision = DType::f32,
                         Device device = Device::cpu);
  explicit LanguageModel(TrainedModel model);

  // Continues the prompt. An empty one begins a text where the tokenizer has a token for that.
  // Sample i is the same whatever the number of samples.
  Generation generate(std::string_view prompt, const GenerationOptions& options = {},
                      const TextSink& sink = {}) const;
  Generation generate(std::span<const std::int32_t> prompt, const GenerationOptions& options = {},
                      const TextSink& sink = {}) const;

  // Continues many prompts, at most `batch` at the same time: the weights are read once for all of
  // them. Prompts wait until a place is free, texts that end leave theirs, and every text has the
  // bits that generate() gives it alone. The result is in the order of the prompts; `done` hears of
  // each as soon as it is complete. Several samples, sliding or no cache are done prompt by prompt.
  // An Error about one of the prompts names its number, from 1 on.
  std::vector<Generation> generate_all(std::span<const std::string> prompts,
                                       const GenerationOptions& options = {},
                                       std::int64_t batch = 16, const TextDone& done = {}) const;

  // The options that the people who trained the model want it to write with
  // (generation_config.json); the usual ones where there is no such file. An Error names a setting
  // of the file that Heddle does not have.
  GenerationOptions recommended() const;

  // The most probable continuations instead of sampled ones. `tokens` as in GenerationOptions.
  SearchResult search(std::string_view prompt, const BeamOptions& options = {},
                      std::optional<std::int64_t> tokens = {}) const;

  // The scores of every possible next token after each of the tokens: [tokens, vocabulary], f32. A
  // model with attention.prefix treats all of them as its prompt, as generate() does.
  Tensor logits(std::span<const std::int32_t> tokens) const;

  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  std::int64_t vocabulary() const;
  std::int64_t context() const;  // context length it was trained with, in tokens
  std::int64_t parameters() const { return model_.parameters(); }

  const TrainedModel& model() const { return model_; }

 private:
  TrainedModel model_;
};

}  // namespace heddle
