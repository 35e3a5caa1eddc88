// A text as windows of `context` tokens: the next token (language) or hidden ones (masked).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/order/mixture.h"
#include "data/text/encoded_text.h"
#include "data/text/masking.h"

namespace heddle::data {

struct TextOptions {
  model::Task task = model::Task::language;
  std::int64_t context = 0;
  double mask_share = 0.15;
  bool prompts = false;              // language: DataConfig::prompts
  std::vector<double> mixture = {};  // DataConfig::mixture
};

// Of each split its texts: one, or the corpora of a mixture; none where the split is not there.
using TextSplits = std::array<std::vector<EncodedText>, kSplits>;

class TextDataset final : public Dataset {
 public:
  // Each text must have the tokens that fewest_tokens() asks for.
  TextDataset(std::shared_ptr<const Codec> codec, const TextOptions& options, TextSplits splits,
              std::string summary);

  std::int64_t epoch_steps(std::int64_t batch) const override;
  model::Batch training_batch(std::int64_t step, std::int64_t batch,
                              std::uint64_t seed) const override;
  BatchShape training_shape(std::int64_t step, std::int64_t batch,
                            std::uint64_t seed) const override;
  bool has(Split split) const override;
  std::int64_t batches(Split split, std::int64_t batch) const override;
  model::Batch batch(Split split, std::int64_t index, std::int64_t batch) const override;
  std::span<const TextPair> pairs(Split) const override { return {}; }
  std::int64_t bytes() const override;
  std::string summary() const override { return summary_; }

  // Fewest tokens a text must have: a whole window in training, one target in evaluation.
  static std::int64_t fewest_tokens(const TextOptions& options, Split split);

 private:
  struct Window {
    const EncodedText* text = nullptr;
    std::int64_t begin = 0, length = 0;
    // Of its masks in the random stream. In training the place in the batch, since windows may
    // overlap; in evaluation the place in the text, so that masks do not depend on the batch size.
    std::uint64_t random_place = 0;
    std::int64_t prompt = 0;  // tokens that are given and not predicted
  };
  using Windows = std::span<const Window>;
  const std::vector<EncodedText>& texts(Split split) const;
  std::int64_t next() const { return options_.task == model::Task::language ? 1 : 0; }
  std::int64_t windows(const EncodedText& text) const;  // of an evaluation
  std::int64_t windows(Split split) const;
  bool has_documents(Split split) const;
  std::vector<Window> draw_windows(std::int64_t step, std::int64_t batch, std::uint64_t seed) const;
  Window window_at(Split split, std::int64_t index) const;
  model::Batch make(Windows windows, const RandomKey& masks) const;
  // Gives the first window a target, where it has none.
  void ask_for_one(const Window& first, model::Batch& batch) const;
  void fill_language(Windows windows, model::Batch& batch) const;
  void fill_masked(Windows windows, const RandomKey& masks, model::Batch& batch) const;
  void add_documents(Windows windows, model::Batch& batch) const;
  void add_prompts(Windows windows, model::Batch& batch) const;

  TextOptions options_;
  TextSplits splits_;
  std::string summary_;
  std::optional<Masking> masking_;
  std::optional<Mixture> mixture_;
};

}  // namespace heddle::data
