// The Vision Transformer (Dosovitskiy et al. 2020): an encoder over the patches of an image.
#include <optional>
#include <utility>

#include "model/kinds/headed.h"
#include "model/kinds/kinds.h"
#include "model/parts/pool.h"
#include "model/parts/tokens.h"
#include "nn/transformer/stack.h"
#include "ops/copy/copy.h"
#include "ops/dropout/dropout.h"
#include "ops/patch_embed/patch_embed.h"

namespace heddle::model {

namespace {

constexpr std::uint32_t kPatchDropout = 0;  // site of dropout

class VisionTransformer final : public HeadedModel {
 public:
  VisionTransformer(const ModelConfig& config, OwnedParameters parameters)
      : HeadedModel(config, std::move(parameters)),
        positions_(config, positions_of(config), this->parameters().root()),
        norm_(embedding_norm(config, this->parameters().root())),
        pool_(config, this->parameters().root()),
        stack_(stack_config(config), this->parameters().root()),
        head_(config.task == Task::embed
                  ? std::nullopt
                  : std::optional(label_head(config, this->parameters().root()))) {
    const nn::Scope patch = this->parameters().root() / "patch";
    const std::int64_t side = config.patch, pixels = config.sizes.channels * side * side;
    weight_ = patch.weight("weight", {config.width, config.sizes.channels, side, side},
                           {pixels, config.width});
    if (config.bias) bias_ = patch.zeros("bias", {config.width});
  }

  Tensor embed(const Batch& batch, Pooling pooling, const nn::Pass& pass) const override {
    std::vector<Tensor> balance;
    return pool_.reduce(tokens(batch, pass, balance), {}, pooling);
  }

 private:
  const Head& head() const override { return given_head(head_); }

  // [B, C], or [B, 2 C] where pooling gives two vectors
  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    return pool_.reduce(tokens(batch, pass, balance), {});
  }

  // [B, tokens before + patches, C]
  Tensor tokens(const Batch& batch, const nn::Pass& pass, std::vector<Tensor>& balance) const {
    const Tensor images = ops::cast(batch.images.to(weight_.device()), pass.precision);
    Tensor x = pool_.extend(ops::patch_embed(images, weight_, bias_));  // [B, before + patches, C]
    x = positions_.add(x, 0);
    if (norm_) x = norm_->forward(x);
    const auto key = pass.site(kPatchDropout);
    if (key && config().embedding_dropout > 0)
      x = ops::dropout(x, config().embedding_dropout, *key);
    return stack_.forward(x, {}, pass, balance);
  }

  Positions positions_;
  std::optional<nn::Norm> norm_;
  Pool pool_;
  nn::Stack stack_;
  std::optional<Head> head_;  // none: vectors alone
  Tensor weight_, bias_;      // [C, channels, patch, patch], [C]
};

}  // namespace

std::unique_ptr<Model> make_vit(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<VisionTransformer>(config, std::move(parameters));
}

}  // namespace heddle::model
