// One vector for a whole sequence: the mean of its vectors, or learned ones that travel with them.
#pragma once

#include "heddle/tensor.h"
#include "model/config.h"

namespace heddle::model {

class Pool {
 public:
  // "class_token" [1, C] and "extra_tokens" [N, C], where the configuration has them
  Pool(const ModelConfig& config, const nn::Scope& scope);

  // The stack sees x: [B, T, C] with the class token and the extra ones in front, ...
  Tensor extend(const Tensor& x) const;
  Tensor lengths(const Tensor& lengths) const;  // undefined stays undefined
  // ... and its result becomes [B, pooled_width]. lengths: of the sequences without those tokens.
  Tensor reduce(const Tensor& y, const Tensor& lengths) const {
    return reduce(y, lengths, pooling_);
  }
  // The same in another way than the model's own. Error where that needs a token the model lacks.
  Tensor reduce(const Tensor& y, const Tensor& lengths, Pooling pooling) const;

 private:
  Tensor mean(const Tensor& y, const Tensor& lengths) const;

  Pooling pooling_;
  std::int64_t before_ = 0;  // tokens in front
  Tensor class_token_;       // undefined: there is none
  Tensor extra_tokens_;
};

}  // namespace heddle::model
