// The recurrent language model: embedding, a stack of Elman layers, classifier.
#include <utility>

#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/kinds/kinds.h"
#include "model/kinds/recurrent.h"
#include "model/parts/head.h"
#include "model/parts/tokens.h"

namespace heddle::model {

namespace {

struct RnnState final : DecodeState {
  HiddenStates hidden;

  void reorder(std::span<const std::int64_t> rows) override { hidden.reorder(rows); }
  std::int64_t position() const override { return hidden.position; }
  std::int64_t bytes() const override { return hidden.bytes(); }
};

class Rnn final : public Model {
 public:
  Rnn(const ModelConfig& config, OwnedParameters parameters)
      : Model(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(elman_config(config, {.layers = config.layers}), this->parameters().root()),
        head_(token_head(config, config.sizes.vocabulary, input_.table(),
                         this->parameters().root())) {}

  Loss loss(const Batch& batch, const nn::Pass& pass, double label_smoothing) const override {
    return head_.loss(hidden(batch, pass), batch.targets, label_smoothing, {});
  }

  Tensor logits(const Batch& batch, const nn::Pass& pass) const override {
    return head_.logits(hidden(batch, pass));
  }

  std::unique_ptr<DecodeState> begin(const Batch&, std::int64_t sequences, std::int64_t,
                                     const nn::Pass& pass) const override {
    auto state = std::make_unique<RnnState>();
    state->hidden.layers =
        stack_.zero_states(sequences, pass.precision, parameters().options().device);
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    HiddenStates& own = own_state<RnnState>(config(), state).hidden;
    check_next_tokens(config(), tokens, own.layers.front().size(0));
    const Tensor x = input_.forward(tokens, own.position, pass);
    nn::ElmanStackResult r = stack_.forward(x, {}, pass, own.layers);
    own.layers = std::move(r.last);
    own.position += tokens.size(1);
    return head_.logits(last_token(r.y));
  }

 private:
  // [B, T, C]
  Tensor hidden(const Batch& batch, const nn::Pass& pass) const {
    return stack_.forward(input_.forward(batch.tokens, 0, pass), batch.lengths, pass).y;
  }

  TokenInput input_;
  nn::ElmanStack stack_;
  Head head_;
};

}  // namespace

std::unique_ptr<Model> make_rnn(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<Rnn>(config, std::move(parameters));
}

}  // namespace heddle::model
