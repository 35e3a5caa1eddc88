// The way out of a model: scores for every token or label, and the loss against targets.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/model.h"
#include "nn/linear/linear.h"
#include "nn/norm/norm.h"

namespace heddle::model {

// The first layer of a classifier of two: norm(f(W x + b)), the norm where the configuration has
// it.
class HeadLayer {
 public:
  // "head_transform.…" [C, C] and "head_norm.…"
  HeadLayer(const ModelConfig& config, const nn::Scope& scope);

  Tensor forward(const Tensor& x) const;  // [..., C] -> [..., C]

 private:
  HeadTransform function_;
  nn::Linear product_;
  std::optional<nn::Norm> norm_;
};

// Where the configuration has one.
std::optional<HeadLayer> head_layer(const ModelConfig& config, const nn::Scope& scope);

class Head {
 public:
  Head(const ModelConfig& config, nn::Linear classifier, std::optional<HeadLayer> first = {})
      : first_(std::move(first)),
        classifier_(std::move(classifier)),
        scale_(config.logit_scale),
        softcap_(config.logit_softcap) {}

  // [..., C] -> [..., classes], f32 (f64 where x is f64)
  Tensor logits(const Tensor& x) const;

  // The logits are never all in memory, unless they are capped. balance: auxiliary losses of the
  // layers.
  Loss loss(const Tensor& x, const Tensor& targets, double label_smoothing,
            const std::vector<Tensor>& balance) const;

 private:
  Tensor read(const Tensor& x) const;  // what the classifier reads of it

  std::optional<HeadLayer> first_;
  nn::Linear classifier_;
  double scale_, softcap_;
};

// Both have the first of two layers where the configuration asks for it. Over labels: "head.weight"
// [classes, C] and, with a bias, "head.bias".
Head label_head(const ModelConfig& config, const nn::Scope& scope);
// Over tokens: "head.weight" [V, C], or the embedding table when tied, and "head.bias" where the
// configuration asks for it.
Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::Scope& scope);

}  // namespace heddle::model
