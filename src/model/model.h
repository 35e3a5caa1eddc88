// A model of any kind: what training, generation and the tools see of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/config.h"
#include "nn/parameters.h"
#include "nn/pass.h"

namespace heddle::model {

struct Loss {
  Tensor total;  // where the backward pass begins: task + auxiliary losses. One number
  Tensor task;   // mean cross-entropy over the counted targets, in nats
};

// State that generation keeps for a batch of sequences between two calls: keys and values, or
// hidden states. Made by Model::begin(), used with the model that made it.
class DecodeState {
 public:
  virtual ~DecodeState() = default;
  // Sequence i goes on as the former sequence rows[i]: beam search. The batch may shrink or grow.
  virtual void reorder(std::span<const std::int64_t> rows) = 0;
  virtual std::int64_t position() const = 0;  // of the token to come
  // Forgets the tokens from `position` on: what follows is to the bit what it would be had they
  // never come. False, and nothing changes, where they cannot be taken back.
  virtual bool rewind(std::int64_t) { return false; }
  virtual std::int64_t bytes() const = 0;  // held now
  // Held when there are as many positions as begin() was told.
  virtual std::int64_t most_bytes() const { return bytes(); }
};

// The next tokens of a sequence of its own, one or more. The state is of one sequence.
struct NextTokens {
  DecodeState* state = nullptr;
  std::span<const std::int32_t> tokens = {};
  std::size_t scores = 1;  // after how many of the last of them scores are wanted
};

class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  nn::Parameters& parameters() { return *parameters_; }
  const nn::Parameters& parameters() const { return *parameters_; }

  Device device() const { return parameters_->options().device; }

  virtual Loss loss(const Batch& batch, const nn::Pass& pass, double label_smoothing) const = 0;

  // Scores of all labels or tokens, f32 (f64 for f64): [B, T, V], [B, U, V] or [B, classes].
  virtual Tensor logits(const Batch& batch, const nn::Pass& pass) const = 0;

  // A vector for each sequence, of what the last layer makes of its tokens: [B, C]. Error for kinds
  // that are no encoders of tokens, and for a class token that the model does not have.
  virtual Tensor embed(const Batch& batch, Pooling pooling, const nn::Pass& pass) const;

  // Generation; Error for kinds that do not generate. `source` holds what translate reads (tokens
  // and lengths), `sequences` is the size of the batch and `positions` the longest sequence that
  // will be written or read, prompt included. Memory is taken as tokens come, not for all of them
  // at once. With attention.prefix the tokens of the first next() are the prompt, and others follow
  // one at a time, unless source.prefix_lengths says how long the prompts are.
  virtual std::unique_ptr<DecodeState> begin(const Batch& source, std::int64_t sequences,
                                             std::int64_t positions, const nn::Pass& pass) const;
  // tokens: [B, n] i32, the next ones of each sequence. Logits after the last: [B, V] f32.
  virtual Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const;
  // The same for sequences of any lengths, together: each has the bits that it has alone, whatever
  // is beside it and however its tokens are cut into calls. Logits that are wanted, [Σ scores, V]
  // f32, one sequence after the other. At most kPromptBlock tokens of a sequence at once
  // (decoding.h).
  virtual Tensor next_each(std::span<const NextTokens> sequences, const nn::Pass& pass) const;

 protected:
  Model(ModelConfig config, std::unique_ptr<nn::Parameters> parameters)
      : config_(std::move(config)), parameters_(std::move(parameters)) {}

 private:
  ModelConfig config_;
  std::unique_ptr<nn::Parameters> parameters_;
};

// Where parameters come from and which device they are on; the rules of initialisation follow from
// the configuration.
struct BuildOptions {
  std::uint64_t seed = 0;
  DType dtype = DType::f32;  // f32, or f64 for proofs
  Device device = Device::cpu;
  nn::ParameterSource source = {};
};

std::unique_ptr<Model> build_model(const ModelConfig& config, const BuildOptions& options = {});

}  // namespace heddle::model
