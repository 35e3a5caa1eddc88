// The decoder: a causal Transformer that predicts the next token (GPT, Llama).
#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/repeat.h"
#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/kinds/headed.h"
#include "model/kinds/kinds.h"
#include "model/parts/tokens.h"
#include "model/prompt.h"
#include "nn/select_rows.h"
#include "nn/transformer/stack.h"
#include "ops/copy/copy.h"
#include "ops/support/index.h"
#include "ops/view/view.h"
#include "tensor/storage.h"

namespace heddle::model {

namespace {

struct DecoderState final : DecodeState {
  nn::StackCache cache;
  std::int64_t sequences = 0;
  // With attention.prefix: of the prompts, [B]. Undefined before the first tokens, unless begin()
  // was told.
  Tensor prefix_lengths = {};
  bool told = false;
  // Steps of one token: [B + …] i32 on the device (Decoder::step), and their work.
  Tensor numbers = {};
  backend::Repeated steps = {};

  void reorder(std::span<const std::int64_t> rows) override {
    cache.reorder(rows);
    sequences = static_cast<std::int64_t>(rows.size());
    if (prefix_lengths.defined()) prefix_lengths = nn::select_rows(prefix_lengths, rows);
  }
  std::int64_t position() const override { return cache.position(); }
  // A prompt that was seen both ways is known as a whole only.
  bool rewind(std::int64_t position) override {
    if (prefix_lengths.defined())
      for (const std::int64_t n : ops::cast(prefix_lengths, DType::i64).to_vector<std::int64_t>())
        if (position < n) return false;
    return cache.rewind(position);
  }
  std::int64_t bytes() const override { return cache.bytes(); }
  std::int64_t most_bytes() const override { return cache.most_bytes(); }
};

class Decoder final : public HeadedModel {
 public:
  Decoder(const ModelConfig& config, OwnedParameters parameters)
      : HeadedModel(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(stack_config(config, true), this->parameters().root()),
        head_(token_head(config, config.sizes.vocabulary, input_.table(),
                         this->parameters().root())) {}

  std::unique_ptr<DecodeState> begin(const Batch& source, std::int64_t sequences,
                                     std::int64_t positions, const nn::Pass& pass) const override {
    auto state = std::make_unique<DecoderState>();
    state->sequences = sequences;
    state->prefix_lengths = source.prefix_lengths;
    state->told = source.prefix_lengths.defined();
    const nn::CacheSize size{sequences, positions, std::min(positions, prompt_block())};
    state->cache = stack_.make_cache(size, pass.precision, parameters().options().device);
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    auto& own = own_state<DecoderState>(config(), state);
    check_next_tokens(config(), tokens, own.sequences);
    if (can_step(own, tokens)) return step(own, tokens, pass);
    nn::StackCache& cache = own.cache;
    nn::StackCall call;
    call.prefix_lengths = prompts_of(own, tokens);
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

  Tensor next_each(std::span<const NextTokens> sequences, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    if (sequences.size() == 1 && sequences[0].tokens.size() == 1 && sequences[0].scores == 1) {
      auto& own = own_state<DecoderState>(config(), *sequences[0].state);
      const Tensor token = Tensor::from<std::int32_t>({1, 1}, sequences[0].tokens);
      if (own.sequences == 1 && can_step(own, token)) return step(own, token, pass);
    }
    std::vector<nn::StackRows> rows;
    rows.reserve(sequences.size());
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> positions, wanted;
    for (const NextTokens& s : sequences) {
      auto& own = own_state<DecoderState>(config(), *s.state);
      const auto count = static_cast<std::int64_t>(s.tokens.size());
      const Tensor tokens = Tensor::from<std::int32_t>({1, count}, s.tokens);
      check_next_tokens(config(), tokens, own.sequences);
      if (own.sequences != 1 || count > prompt_block())
        fail(ErrorCode::invalid_argument, to_string(config().kind), "argument sequences",
             "states of one sequence and at most " + std::to_string(prompt_block()) + " tokens",
             std::to_string(own.sequences) + " sequences, " + std::to_string(count) + " tokens");
      rows.push_back({&own.cache, count, prompts_of(own, tokens)});
      for (std::int64_t t = 0; t < count; ++t) positions.push_back(own.position() + t);
      ids.insert(ids.end(), s.tokens.begin(), s.tokens.end());
      const auto end = static_cast<std::int64_t>(ids.size());
      for (std::int64_t i = std::ssize(s.tokens) - static_cast<std::int64_t>(s.scores); i < count;
           ++i)
        wanted.push_back(end - count + i);
    }
    const auto all = static_cast<std::int64_t>(ids.size());
    Tensor x = input_.forward(Tensor::from<std::int32_t>({1, all}, ids), positions, pass);
    x = ops::reshape(stack_.forward_each(x, rows, pass), {all, x.size(2)});  // [N, C]
    return head_.logits(all == std::ssize(wanted) ? x : nn::select_rows(x, wanted));
  }

 private:
  // Where a device repeats work, every step of one token is the same work.
  bool can_step(const DecoderState& state, const Tensor& tokens) const {
    const bool known = tokens.device().is_cpu() || tokens.device().is_meta();
    return tokens.size(1) == 1 && known && backend::can_repeat(device()) && input_.can_step() &&
           stack_.can_step(state.cache);
  }

  // Ids, position and what is seen go to the device together. Everything else is there: its place
  // is the key under which the device knows this step's work.
  Tensor step(DecoderState& state, const Tensor& tokens, const nn::Pass& pass) const {
    const std::int64_t batch = state.sequences;
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(batch));
    if (!tokens.device().is_meta()) {
      ops::check_indices({"embedding", "ids", tokens}, config().sizes.vocabulary);
      numbers = tokens.to_vector<std::int32_t>();
    }
    backend::Repeated::Key key = {static_cast<std::uint64_t>(batch),
                                  static_cast<std::uint64_t>(pass.precision)};
    stack_.reserve_step(state.cache, pass.precision, key);
    const std::vector<std::int32_t> of_stack = stack_.step_numbers(state.cache, batch);
    numbers.insert(numbers.end(), of_stack.begin(), of_stack.end());
    const Shape shape{static_cast<std::int64_t>(numbers.size())};
    if (!state.numbers.defined() || state.numbers.shape() != shape)
      state.numbers = Tensor::empty(shape, DType::i32, device());
    overwrite(state.numbers, Tensor::from<std::int32_t>(shape, numbers));
    key.push_back(reinterpret_cast<std::uintptr_t>(device_address(state.numbers)));
    key.push_back(parameters().version());
    const auto work = [&] {
      const Tensor ids = views::reshape(views::slice(state.numbers, 0, 0, batch), {batch, 1});
      const Tensor rest = views::slice(state.numbers, 0, batch, shape[0]);
      const Tensor x = input_.forward_step(ids, views::slice(rest, 0, 0, 1), pass);
      return std::vector{head_.logits(last_token(stack_.forward_step(x, rest, pass, state.cache)))};
    };
    // The next step writes the same memory again: what is handed out is a copy.
    const Tensor logits = ops::clone(state.steps.run(device(), key, work)[0]);
    state.cache.advance(1);
    return logits;
  }

  // The first tokens are the prompt, unless begin() was given its length. More than one token at
  // once after them could be the rest of a prompt cut into pieces: its first piece would have been
  // read without the rest, so that is refused instead of giving different scores.
  Tensor prompts_of(DecoderState& state, const Tensor& tokens) const {
    if (!config().attention.prefix || state.told) return state.prefix_lengths;
    if (state.position() > 0 && tokens.size(1) > 1)
      fail(ErrorCode::invalid_argument, to_string(config().kind), "argument tokens",
           "one token at a time behind the prompt: with attention.prefix all of it is seen both "
           "ways, so it must come at once, or begin() must be told prefix_lengths",
           tokens.describe());
    if (state.position() == 0)
      state.prefix_lengths =
          prompt_lengths(config(), state.sequences, tokens.size(1), tokens.device());
    return state.prefix_lengths;
  }

  // A prompt whose tokens see each other must come as one block.
  std::int64_t prompt_block() const {
    return config().attention.prefix ? std::numeric_limits<std::int64_t>::max() / 2 : kPromptBlock;
  }

  const Head& head() const override { return head_; }

  Tensor hidden(const Batch& batch, const nn::Pass& pass,
                std::vector<Tensor>& balance) const override {
    nn::StackCall call;
    call.lengths = batch.lengths;
    call.documents = batch.documents;
    call.prefix_lengths = batch.prefix_lengths;  // refused where missing, and where of no use
    return stack_.forward(input_.forward(batch.tokens, 0, pass), call, pass, balance);
  }

  TokenInput input_;
  nn::Stack stack_;
  Head head_;
};

}  // namespace

std::unique_ptr<Model> make_decoder(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<Decoder>(config, std::move(parameters));
}

}  // namespace heddle::model
