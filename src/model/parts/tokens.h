// The way into a Transformer: tokens or patches become vectors with positions.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "heddle/tensor.h"
#include "model/config.h"
#include "nn/linear/embedding.h"
#include "nn/norm/norm.h"
#include "nn/pass.h"

namespace heddle::model {

// Positions that are added to the vectors, once: sinusoidal and learned. The others are the
// attention layers' business, and this does nothing.
class Positions {
 public:
  Positions(const ModelConfig& config, std::int64_t count, const nn::Scope& scope);

  Tensor add(const Tensor& x, std::int64_t first) const;  // x: [B, T, C], from position `first`
  // x: [1, T, C], each token at its own position.
  Tensor add(const Tensor& x, std::span<const std::int64_t> positions) const;
  // x: [B, 1, C], at a position that is a number of the device, [1] i32.
  Tensor add(const Tensor& x, const Tensor& at) const;
  bool can_step() const { return !sinusoidal_; }  // whether it can

 private:
  std::optional<nn::SinusoidalPosition> sinusoidal_;
  Tensor table_;  // [positions, C], learned
};

// The norm behind the embeddings, where the configuration has one: "embed_norm.…".
std::optional<nn::Norm> embedding_norm(const ModelConfig& config, const nn::Scope& scope);

class TokenInput {
 public:
  // "embed.weight" [V, C], unless a table is given to share, "position.weight" for learned
  // positions and "embed_norm.…" where there is a norm behind them.
  TokenInput(const ModelConfig& config, std::int64_t vocabulary, const nn::Scope& scope,
             const Tensor& shared_table = {});

  // ids: [B, T] -> [B, T, C], the first at position `first`.
  Tensor forward(const Tensor& ids, std::int64_t first, const nn::Pass& pass) const;
  // ids: [1, T] -> [1, T, C], each at its own position. For inference: no dropout.
  Tensor forward(const Tensor& ids, std::span<const std::int64_t> positions,
                 const nn::Pass& pass) const;
  // [B, 1] at one position that is a number of the device, as ids are, without dropout.
  Tensor forward_step(const Tensor& ids, const Tensor& at, const nn::Pass& pass) const;
  bool can_step() const { return positions_.can_step(); }

  const Tensor& table() const { return embedding_.table(); }

 private:
  Tensor embedded(const Tensor& ids, const nn::Pass& pass) const;

  nn::Embedding embedding_;
  Positions positions_;
  std::optional<nn::Norm> norm_;
  double scale_ = 1;
  double dropout_ = 0;
};

}  // namespace heddle::model
