// One vector for a whole sequence: the mean of its vectors, or a class token that travels with
// them.
#pragma once

#include "heddle/tensor.h"
#include "model/config.h"

namespace heddle::model {

class Pool {
 public:
  Pool(const ModelConfig& config, const nn::Scope& scope);  // "class_token" [1, C]

  // The stack sees x: [B, T, C] with the class token in front, if there is one, ...
  Tensor extend(const Tensor& x) const;
  Tensor lengths(const Tensor& lengths) const;  // undefined stays undefined
  // ... and its result becomes [B, C]. lengths: of the sequences without class token.
  Tensor reduce(const Tensor& y, const Tensor& lengths) const {
    return reduce(y, lengths, pooling_);
  }
  // The same in another way than the model's own. class_token: of a model that has one, else Error.
  Tensor reduce(const Tensor& y, const Tensor& lengths, Pooling pooling) const;

 private:
  Pooling pooling_;
  Tensor class_token_;  // undefined: there is none
};

}  // namespace heddle::model
