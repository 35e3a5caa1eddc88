// The encoder: a Transformer that sees both sides. Tags, classes of whole texts, masked tokens.
#include <utility>

#include "model/headed.h"
#include "model/kinds.h"
#include "model/pool.h"
#include "model/stack.h"
#include "model/tokens.h"

namespace heddle::model {

namespace {

Head make_head(const ModelConfig& config, const Tensor& table, const nn::ParamScope& scope) {
  if (config.task == Task::masked) return token_head(config, config.sizes.vocabulary, table, scope);
  return {config.sizes.classes, config.width, config.bias, scope};
}

class Encoder final : public HeadedModel {
 public:
  Encoder(const ModelConfig& config, Parameters parameters)
      : HeadedModel(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(config, {.layers = config.layers}, this->parameters().root()),
        head_(make_head(config, input_.table(), this->parameters().root())) {
    if (config.task == Task::classify) pool_.emplace(config, this->parameters().root());
  }

 private:
  const Head& head() const override { return head_; }

  // [B, T, C], or [B, C] for classify.
  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    StackCall call;
    call.lengths = batch.lengths;
    call.documents = batch.documents;
    const std::int64_t first = config().has_class_token() ? 1 : 0;
    const Tensor x = input_.forward(batch.tokens, first, pass);
    if (!pool_) return stack_.forward(x, call, pass, balance);
    call.lengths = pool_->lengths(batch.lengths);
    return pool_->reduce(stack_.forward(pool_->extend(x), call, pass, balance), batch.lengths);
  }

  TokenInput input_;
  Stack stack_;
  Head head_;
  std::optional<Pool> pool_;
};

}  // namespace

std::unique_ptr<Model> make_encoder(const ModelConfig& config, Parameters parameters) {
  return std::make_unique<Encoder>(config, std::move(parameters));
}

}  // namespace heddle::model
