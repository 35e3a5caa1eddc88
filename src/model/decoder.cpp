// The decoder: a causal Transformer that predicts the next token (GPT, Llama).
#include <algorithm>
#include <limits>
#include <utility>

#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/headed.h"
#include "model/kinds.h"
#include "model/stack.h"
#include "model/tokens.h"
#include "ops/view/view.h"

namespace heddle::model {

namespace {

struct DecoderState final : DecodeState {
  StackCache cache;
  std::int64_t sequences = 0;
  std::int64_t prefix = 0;  // with attention.prefix: tokens of the prompt

  void reorder(std::span<const std::int64_t> rows) override {
    cache.reorder(rows);
    sequences = static_cast<std::int64_t>(rows.size());
  }
  std::int64_t position() const override { return cache.position(); }
  std::int64_t bytes() const override { return cache.bytes(); }
  std::int64_t most_bytes() const override { return cache.most_bytes(); }
};

class Decoder final : public HeadedModel {
 public:
  Decoder(const ModelConfig& config, Parameters parameters)
      : HeadedModel(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(config, {.layers = config.layers, .causal = true}, this->parameters().root()),
        head_(token_head(config, config.sizes.vocabulary, input_.table(),
                         this->parameters().root())) {}

  std::unique_ptr<DecodeState> begin(const Batch&, std::int64_t sequences, std::int64_t positions,
                                     const nn::Pass& pass) const override {
    auto state = std::make_unique<DecoderState>();
    state->sequences = sequences;
    const nn::CacheSize size{sequences, positions, std::min(positions, prompt_block())};
    state->cache = stack_.make_cache(size, pass.precision, parameters().options().device);
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    auto& own = own_state<DecoderState>(config(), state);
    check_next_tokens(config(), tokens, own.sequences);
    StackCache& cache = own.cache;
    StackCall call;
    if (config().attention.prefix) {
      if (cache.position() == 0) own.prefix = tokens.size(1);
      call.prefix_lengths = Tensor::full({own.sequences}, static_cast<double>(own.prefix),
                                         DType::i64, tokens.device());
    }
    Tensor x;
    for (std::int64_t done = 0; done < tokens.size(1);) {
      const std::int64_t end = std::min(done + prompt_block(), tokens.size(1));
      const Tensor block = ops::slice(tokens, 1, done, end);
      x = input_.forward(block, cache.position(), pass);
      x = stack_.forward_cached(x, call, pass, cache);
      done = end;
    }
    return head_.logits(last_token(x));
  }

 private:
  // A prompt whose tokens see each other must come as one block.
  std::int64_t prompt_block() const {
    return config().attention.prefix ? std::numeric_limits<std::int64_t>::max() / 2 : kPromptBlock;
  }

  // A batch that does not say has no prompts: all of it is what the model continues.
  static Tensor prefix_lengths(const Batch& batch) {
    if (batch.prefix_lengths.defined()) return batch.prefix_lengths;
    return Tensor::full({batch.tokens.size(0)}, 0, DType::i64, batch.tokens.device());
  }

  const Head& head() const override { return head_; }

  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    StackCall call;
    call.lengths = batch.lengths;
    call.documents = batch.documents;
    if (config().attention.prefix) call.prefix_lengths = prefix_lengths(batch);
    return stack_.forward(input_.forward(batch.tokens, 0, pass), call, pass, balance);
  }

  TokenInput input_;
  Stack stack_;
  Head head_;
};

}  // namespace

std::unique_ptr<Model> make_decoder(const ModelConfig& config, Parameters parameters) {
  return std::make_unique<Decoder>(config, std::move(parameters));
}

}  // namespace heddle::model
