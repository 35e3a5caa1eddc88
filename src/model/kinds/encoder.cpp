// The encoder: a Transformer that sees both sides. Tags, classes of whole texts, masked tokens.
#include <utility>

#include "model/kinds/headed.h"
#include "model/kinds/kinds.h"
#include "model/parts/pool.h"
#include "model/parts/tokens.h"
#include "nn/transformer/stack.h"

namespace heddle::model {

namespace {

Head make_head(const ModelConfig& config, const Tensor& table, const nn::Scope& scope) {
  if (config.task == Task::masked) return token_head(config, config.sizes.vocabulary, table, scope);
  return label_head(config, scope);
}

class Encoder final : public HeadedModel {
 public:
  Encoder(const ModelConfig& config, OwnedParameters parameters)
      : HeadedModel(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(stack_config(config), this->parameters().root()),
        head_(make_head(config, input_.table(), this->parameters().root())) {
    if (config.task == Task::classify) pool_.emplace(config, this->parameters().root());
  }

 private:
  const Head& head() const override { return head_; }

  // [B, T, C], or [B, C] for classify.
  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    nn::StackCall call;
    call.lengths = batch.lengths;
    call.documents = batch.documents;
    const std::int64_t first = config().has_class_token() ? 1 : 0;
    const Tensor x = input_.forward(batch.tokens, first, pass);
    if (!pool_) return stack_.forward(x, call, pass, balance);
    call.lengths = pool_->lengths(batch.lengths);
    return pool_->reduce(stack_.forward(pool_->extend(x), call, pass, balance), batch.lengths);
  }

  TokenInput input_;
  nn::Stack stack_;
  Head head_;
  std::optional<Pool> pool_;
};

}  // namespace

std::unique_ptr<Model> make_encoder(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<Encoder>(config, std::move(parameters));
}

}  // namespace heddle::model
