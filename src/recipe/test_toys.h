// Shared by tests of training: a small decoder, and data that needs no files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "heddle/random.h"
#include "model/model.h"
#include "recipe/train_config.h"

namespace heddle::toys {

inline constexpr std::int64_t kToyVocabulary = 11;
inline constexpr std::int64_t kToyContext = 6;

// Data of which a test gives the part it is about.
class EmptyData : public data::Dataset {
 public:
  EmptyData() : Dataset(nullptr) {}
  std::int64_t epoch_steps(std::int64_t) const override { return 1; }
  model::Batch training_batch(std::int64_t, std::int64_t, std::uint64_t) const override {
    return {};
  }
  bool has(data::Split) const override { return false; }
  std::int64_t batches(data::Split, std::int64_t) const override { return 0; }
  model::Batch batch(data::Split, std::int64_t, std::int64_t) const override { return {}; }
  std::span<const data::TextPair> pairs(data::Split) const override { return {}; }
  std::string summary() const override { return {}; }
};

// Sequences that count upwards modulo the vocabulary from a random token, some of them shorter.
class ToyData final : public data::Dataset {
 public:
  explicit ToyData(bool validation = true, bool ragged = false)
      : Dataset(nullptr), validation_(validation), ragged_(ragged) {}

  std::int64_t epoch_steps(std::int64_t) const override { return 1; }
  model::Batch training_batch(std::int64_t step, std::int64_t batch,
                              std::uint64_t seed) const override {
    return make(batch, {seed, static_cast<std::uint32_t>(step), 77});
  }
  bool has(data::Split split) const override {
    return split == data::Split::training || (split == data::Split::validation && validation_);
  }
  std::int64_t batches(data::Split, std::int64_t batch) const override { return 8 / batch + 1; }
  model::Batch batch(data::Split, std::int64_t index, std::int64_t batch) const override {
    return make(batch, {0, static_cast<std::uint32_t>(index), 78});
  }
  std::span<const data::TextPair> pairs(data::Split) const override { return {}; }
  std::string summary() const override { return "toy"; }

 private:
  model::Batch make(std::int64_t rows, const RandomKey& key) const {
    model::Batch b;
    b.tokens = Tensor::empty({rows, kToyContext}, DType::i32);
    b.targets = Tensor::empty({rows, kToyContext}, DType::i32);
    auto* tokens = b.tokens.mutable_data<std::int32_t>();
    auto* targets = b.targets.mutable_data<std::int32_t>();
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto random = philox(key, static_cast<std::uint64_t>(r));
      const std::int64_t length = ragged_ ? 1 + random[1] % kToyContext : kToyContext;
      for (std::int64_t t = 0; t < kToyContext; ++t) {
        const std::int64_t token = (random[0] + t) % kToyVocabulary;
        *tokens++ = static_cast<std::int32_t>(token);
        *targets++ =
            t < length ? static_cast<std::int32_t>((token + 1) % kToyVocabulary) : model::kIgnore;
        b.counted += t < length ? 1 : 0;
      }
    }
    return b;
  }

  bool validation_, ragged_;
};

inline model::ModelConfig toy_model(double dropout = 0) {
  model::ModelConfig c;
  c.layers = 1;
  c.width = 8;
  c.attention.heads = 2;
  c.dropout = dropout;
  c.sizes.vocabulary = kToyVocabulary;
  c.sizes.context = kToyContext;
  return c;
}

inline std::unique_ptr<model::Model> toy(double dropout = 0, DType dtype = DType::f32) {
  model::BuildOptions options;
  options.seed = 3;
  options.dtype = dtype;
  return model::build_model(toy_model(dropout), options);
}

inline recipe::TrainConfig toy_training() {
  recipe::TrainConfig c;
  c.steps = 20;
  c.batch = 4;
  c.learning_rate = 1e-2;
  c.warmup = 3;
  c.log_every = 4;
  c.eval_every = 5;
  c.save_every = 6;
  return c;
}

inline std::vector<std::vector<float>> weights_of(const model::Model& model) {
  std::vector<std::vector<float>> all;
  for (const nn::Parameter& p : model.parameters().all())
    all.push_back(p.tensor.to_vector<float>());
  return all;
}

}  // namespace heddle::toys
