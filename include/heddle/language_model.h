// A trained language model inside a program: what `heddle train` wrote, opened and used.
//
//   const heddle::LanguageModel model("runs/char-gpt");
//   std::cout << model.write("In the beginning", {.tokens = 100}).text << "\n";
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/tensor.h"

namespace heddle {

struct WritingOptions {
  std::optional<std::int64_t> tokens = {};  // at most; absent: 256, or what fits the context
  double temperature = 1;                   // 0: always the most probable token
  std::int64_t top_k = 0;                   // draw from the k best; 0: from all
  double top_p = 1;  // from the best that together have the probability p; 1: from all
  double min_p = 0;  // from those at least p times as probable as the best; 0: from all
  double repetition_penalty = 1;       // 1: none
  std::vector<std::string> stop = {};  // the text ends before the first of these
  bool slide = false;      // beyond the context go on from the last half of it, read again
  std::uint64_t seed = 0;  // same seed, same text
};

struct Writing {
  std::string text;  // what was written, without the prompt
  std::vector<std::int32_t> tokens;
  bool complete = false;  // ended by the model or by a stop string, not by the number of tokens
};

// Gets text as soon as it is certain: UTF-8, in pieces of any length. It may throw to give up.
using WritingSink = std::function<void(std::string_view piece)>;

// One thread at a time may use a model; it computes on all of them itself (heddle/runtime.h). Every
// function throws heddle::Error.
class LanguageModel {
 public:
  // A run directory. An Error names the file that is missing or bad, or the task when the model is
  // not one that writes text. `precision` is that of activations: f32 or bf16.
  explicit LanguageModel(const std::string& directory, DType precision = DType::f32,
                         Device device = Device::cpu);
  ~LanguageModel();
  LanguageModel(LanguageModel&& other) noexcept;
  LanguageModel& operator=(LanguageModel&& other) noexcept;

  // Continues the prompt. An empty one begins a text where the tokenizer has a token for that.
  Writing write(std::string_view prompt, const WritingOptions& options = {},
                const WritingSink& sink = {}) const;

  // The scores of every next token behind each of the tokens: [tokens, vocabulary], f32. A model
  // with attention.prefix takes all of them for its prompt, as write() does.
  Tensor logits(std::span<const std::int32_t> tokens) const;

  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  std::int64_t vocabulary() const;
  std::int64_t context() const;  // tokens that it saw at a time in training
  std::int64_t parameters() const;

 private:
  struct Parts;
  const Parts& parts() const;  // Error for a model that was moved away
  std::unique_ptr<const Parts> parts_;
};

}  // namespace heddle
