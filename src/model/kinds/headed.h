// A model whose loss and scores come from one head over what its layers make of a batch: every
// Transformer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "model/model.h"
#include "model/parts/head.h"

namespace heddle::model {

class HeadedModel : public Model {
 public:
  Loss loss(const Batch& batch, const nn::Pass& pass, double label_smoothing) const final {
    std::vector<Tensor> balance;
    const Tensor x = hidden(batch, pass, balance);
    return head().loss(x, batch.targets, label_smoothing, balance);
  }

  Tensor logits(const Batch& batch, const nn::Pass& pass) const final {
    std::vector<Tensor> balance;
    return head().logits(hidden(batch, pass, balance));
  }

 protected:
  using Model::Model;

  // [B, T, C], or [B, C] for classify. balance: where auxiliary losses of the layers are added to.
  virtual Tensor hidden(const Batch& batch, const nn::Pass& pass,
                        std::vector<Tensor>& balance) const = 0;
  virtual const Head& head() const = 0;

  // The head of a model that may have none; Error where it has none.
  const Head& given_head(const std::optional<Head>& head) const {
    if (!head)
      fail(ErrorCode::unsupported, to_string(config().kind), "scores",
           "a model with a classifier: this one has vectors alone",
           "task " + std::string(to_string(config().task)));
    return *head;
  }
};

}  // namespace heddle::model
