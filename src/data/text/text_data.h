// A text as windows of `context` tokens: the next token (language) or hidden ones (masked).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/text/encode_text.h"
#include "data/text/masking.h"

namespace heddle::data {

struct TextOptions {
  model::Task task = model::Task::language;
  std::int64_t context = 0;
  double mask_share = 0.15;
  bool prompts = false;  // language: DataConfig::prompts
};

using TextSplits = std::array<std::optional<EncodedText>, kSplits>;

class TextDataset final : public Dataset {
 public:
  // Each text must have the tokens that check_text() asks for.
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
    std::int64_t begin = 0, length = 0;
    // Of its masks in the random stream. In training the place in the batch, since windows may
    // overlap; in evaluation the place in the text, so that masks do not depend on the batch size.
    std::uint64_t random_place = 0;
    std::int64_t prompt = 0;  // tokens that are given and not predicted
  };
  using Windows = std::span<const Window>;
  const EncodedText& text(Split split) const;
  std::int64_t next() const { return options_.task == model::Task::language ? 1 : 0; }
  std::int64_t windows(Split split) const;
  model::Batch make(const EncodedText& text, Windows windows, const RandomKey& masks) const;
  // Gives the first window a target, where it has none.
  void ask_for_one(const TokenStore& text, const Window& first, model::Batch& batch) const;
  void fill_language(const TokenStore& text, Windows windows, model::Batch& batch) const;
  void fill_masked(const TokenStore& text, Windows windows, const RandomKey& masks,
                   model::Batch& batch) const;
  void add_documents(const EncodedText& text, Windows windows, model::Batch& batch) const;
  void add_prompts(Windows windows, model::Batch& batch) const;

  TextOptions options_;
  TextSplits splits_;
  std::string summary_;
  std::optional<Masking> masking_;
};

}  // namespace heddle::data
