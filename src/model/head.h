// The way out of a model: scores for every token or label, and the loss against targets.
#pragma once

#include <vector>

#include "heddle/tensor.h"
#include "model/batch.h"
#include "model/model.h"

namespace heddle::model {

class Head {
 public:
  // "head.weight" [classes, C] and, with `bias`, "head.bias".
  Head(std::int64_t classes, std::int64_t width, bool bias, const nn::ParamScope& scope);
  // Shares the embedding table [V, C].
  explicit Head(Tensor table) : weight_(std::move(table)) {}

  Tensor logits(const Tensor& x) const;  // [..., C] -> [..., classes], f32 (f64 beside f64)

  // The logits are never all in memory. balance: auxiliary losses of the layers.
  Loss loss(const Tensor& x, const Tensor& targets, double label_smoothing,
            const std::vector<Tensor>& balance) const;

 private:
  Tensor weight_, bias_;
};

// The classifier over tokens: the embedding table when tied.
Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::ParamScope& scope);

}  // namespace heddle::model
