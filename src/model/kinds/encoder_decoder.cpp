// The encoder–decoder (Vaswani et al. 2017): one stack reads, the other writes and looks at what
// was read through cross-attention. Trained with the right answer as the decoder's input.
#include <algorithm>
#include <utility>

#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/kinds/headed.h"
#include "model/kinds/kinds.h"
#include "model/parts/tokens.h"
#include "nn/select_rows.h"
#include "nn/transformer/stack.h"
#include "ops/view/view.h"

namespace heddle::model {

namespace {

struct PairState final : DecodeState {
  nn::StackCache cache;
  nn::StackCall call;  // the memory, until the caches hold its keys and values, and its lengths
  std::int64_t sequences = 0;

  void reorder(std::span<const std::int64_t> rows) override {
    cache.reorder(rows);
    sequences = static_cast<std::int64_t>(rows.size());
    for (Tensor* t : {&call.memory, &call.memory_lengths})
      if (t->defined()) *t = nn::select_rows(*t, rows);
  }
  std::int64_t position() const override { return cache.position(); }
  std::int64_t bytes() const override { return cache.bytes(); }
  std::int64_t most_bytes() const override { return cache.most_bytes(); }
};

nn::StackConfig writing_stack(const ModelConfig& config) {
  nn::StackConfig stack = stack_config(config, true);
  stack.layers = config.layers_of_decoder();
  stack.cross = true;
  stack.first_layer = nn::kSecondStack;
  return stack;
}

class EncoderDecoder final : public HeadedModel {
 public:
  EncoderDecoder(const ModelConfig& config, OwnedParameters parameters)
      : HeadedModel(config, std::move(parameters)),
        source_(config, config.sizes.vocabulary, scope("encoder")),
        encoder_(stack_config(config), scope("encoder")),
        target_(config, config.vocabulary_of_target(), scope("decoder"), shared_table(config)),
        decoder_(writing_stack(config), scope("decoder")),
        head_(token_head(config, config.vocabulary_of_target(), target_.table(),
                         this->parameters().root())) {}

  std::unique_ptr<DecodeState> begin(const Batch& source, std::int64_t sequences,
                                     std::int64_t positions, const nn::Pass& pass) const override {
    check_source(config(), source, sequences);
    const NoGrad no_grad;
    auto state = std::make_unique<PairState>();
    std::vector<Tensor> balance;
    state->call = read(source, pass, balance);
    state->sequences = sequences;
    state->cache = decoder_.make_cache({sequences, positions, std::min(positions, kPromptBlock)},
                                       pass.precision, parameters().options().device);
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    auto& own = own_state<PairState>(config(), state);
    check_next_tokens(config(), tokens, own.sequences);
    Tensor x;
    for (std::int64_t done = 0; done < tokens.size(1); done += kPromptBlock) {
      const std::int64_t end = std::min(done + kPromptBlock, tokens.size(1));
      x = target_.forward(ops::slice(tokens, 1, done, end), own.cache.position(), writing(pass));
      x = decoder_.forward_cached(x, own.call, pass, own.cache);
      own.call.memory = {};
    }
    return head_.logits(last_token(x));
  }

 private:
  const Head& head() const override { return head_; }

  nn::Scope scope(std::string_view name) { return parameters().root() / name; }

  // One table for both languages and the classifier where there is one vocabulary.
  Tensor shared_table(const ModelConfig& config) const {
    return config.shares_embedding() ? source_.table() : Tensor();
  }

  // The decoder's embeddings drop by a stream of their own.
  static nn::Pass writing(const nn::Pass& pass) { return pass.layer(nn::kSecondStack - 1); }

  nn::StackCall read(const Batch& batch, const nn::Pass& pass, std::vector<Tensor>& balance) const {
    nn::StackCall call;
    call.lengths = batch.lengths;
    nn::StackCall out;
    out.memory = encoder_.forward(source_.forward(batch.tokens, 0, pass), call, pass, balance);
    out.memory_lengths = batch.lengths;
    return out;
  }

  // [B, U, C]
  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    nn::StackCall call = read(batch, pass, balance);
    call.lengths = batch.target_lengths;
    const Tensor x = target_.forward(batch.target_tokens, 0, writing(pass));
    return decoder_.forward(x, call, pass, balance);
  }

  TokenInput source_;
  nn::Stack encoder_;
  TokenInput target_;
  nn::Stack decoder_;
  Head head_;
};

}  // namespace

std::unique_ptr<Model> make_encoder_decoder(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<EncoderDecoder>(config, std::move(parameters));
}

}  // namespace heddle::model
