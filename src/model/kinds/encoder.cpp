// The encoder: a Transformer that sees both sides. Tags, classes of whole texts, masked tokens, and
// vectors of texts.
#include <optional>
#include <utility>

#include "model/kinds/headed.h"
#include "model/kinds/kinds.h"
#include "model/parts/pool.h"
#include "model/parts/tokens.h"
#include "nn/transformer/stack.h"

namespace heddle::model {

namespace {

std::optional<Head> make_head(const ModelConfig& config, const Tensor& table,
                              const nn::Scope& scope) {
  if (config.task == Task::embed) return std::nullopt;
  if (config.task == Task::masked) return token_head(config, config.sizes.vocabulary, table, scope);
  return label_head(config, scope);
}

class Encoder final : public HeadedModel {
 public:
  Encoder(const ModelConfig& config, OwnedParameters parameters)
      : HeadedModel(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(stack_config(config), this->parameters().root()),
        head_(make_head(config, input_.table(), this->parameters().root())),
        pool_(config, this->parameters().root()) {}

  Tensor embed(const Batch& batch, Pooling pooling, const nn::Pass& pass) const override {
    std::vector<Tensor> balance;
    return pool_.reduce(tokens(batch, pass, balance), batch.lengths, pooling);
  }

 private:
  const Head& head() const override { return given_head(head_); }

  // [B, T, C], the class token first where the model has one.
  Tensor tokens(const Batch& batch, const nn::Pass& pass, std::vector<Tensor>& balance) const {
    nn::StackCall call;
    call.lengths = pool_.lengths(batch.lengths);
    call.documents = batch.documents;
    const std::int64_t first = config().has_class_token() ? 1 : 0;
    const Tensor x = pool_.extend(input_.forward(batch.tokens, first, pass));
    return stack_.forward(x, call, pass, balance);
  }

  // [B, T, C], or [B, C] for classify.
  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    const Tensor y = tokens(batch, pass, balance);
    return config().task == Task::classify ? pool_.reduce(y, batch.lengths) : y;
  }

  TokenInput input_;
  nn::Stack stack_;
  std::optional<Head> head_;
  Pool pool_;  // what stands for the whole: classify, and vectors
};

}  // namespace

std::unique_ptr<Model> make_encoder(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<Encoder>(config, std::move(parameters));
}

}  // namespace heddle::model
