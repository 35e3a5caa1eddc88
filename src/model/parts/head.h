// The way out of a model: scores for every token or label, and the loss against targets.
#pragma once

#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/model.h"
#include "nn/linear/linear.h"

namespace heddle::model {

class Head {
 public:
  Head(const ModelConfig& config, nn::Linear classifier)
      : classifier_(std::move(classifier)),
        scale_(config.logit_scale),
        softcap_(config.logit_softcap) {}

  // [..., C] -> [..., classes], f32 (f64 where x is f64)
  Tensor logits(const Tensor& x) const;

  // The logits are never all in memory, unless they are capped. balance: auxiliary losses of the
  // layers.
  Loss loss(const Tensor& x, const Tensor& targets, double label_smoothing,
            const std::vector<Tensor>& balance) const;

 private:
  Tensor scaled(const Tensor& x) const;

  nn::Linear classifier_;
  double scale_, softcap_;
};

// Over labels: "head.weight" [classes, C] and, with a bias, "head.bias".
Head label_head(const ModelConfig& config, const nn::Scope& scope);
// Over tokens: "head.weight" [V, C], or the embedding table when tied, and "head.bias" where the
// configuration asks for it.
Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::Scope& scope);

}  // namespace heddle::model
