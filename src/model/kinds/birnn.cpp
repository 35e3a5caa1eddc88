// The bidirectional recurrent network: a label for each token, or the next token of a prefix.
//
// As a language model it computes p(x_{t+1} | BiRNN(x_1 .. x_t)): a backward layer that has read
// x_{t+1} would give the answer away, so the network is run on each prefix for itself. That is
// B · T sequences of up to T tokens: O(T²) in time and memory, the price of asking a two-way
// network for the next token. validate() limits the context.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/kinds/kinds.h"
#include "model/kinds/recurrent.h"
#include "model/parts/head.h"
#include "model/parts/tokens.h"
#include "nn/select_rows.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::model {

namespace {

// The tokens so far: every step reads them all again.
struct PrefixState final : DecodeState {
  Tensor tokens;  // [B, n] i32
  std::int64_t sequences = 0;

  void reorder(std::span<const std::int64_t> rows) override {
    if (tokens.defined()) {
      tokens = nn::select_rows(tokens, rows);
    } else {
      for (const std::int64_t row : rows)
        if (row < 0 || row >= sequences)
          fail(ErrorCode::out_of_range, "birnn", "row of reorder()",
               "below " + std::to_string(sequences), std::to_string(row));
    }
    sequences = static_cast<std::int64_t>(rows.size());
  }
  std::int64_t position() const override { return tokens.defined() ? tokens.size(1) : 0; }
  std::int64_t bytes() const override {
    return tokens.defined() ? static_cast<std::int64_t>(tokens.bytes()) : 0;
  }
};

class BiRnn final : public Model {
 public:
  BiRnn(const ModelConfig& config, OwnedParameters parameters)
      : Model(config, std::move(parameters)),
        input_(config, config.sizes.vocabulary, this->parameters().root()),
        stack_(elman_config(config, {.layers = config.layers, .both_ways = true}),
               this->parameters().root()),
        head_(make_head(config)) {}

  Loss loss(const Batch& batch, const nn::Pass& pass, double label_smoothing) const override {
    return head_.loss(hidden(batch, pass), batch.targets, label_smoothing, {});
  }

  Tensor logits(const Batch& batch, const nn::Pass& pass) const override {
    return head_.logits(hidden(batch, pass));
  }

  std::unique_ptr<DecodeState> begin(const Batch& source, std::int64_t sequences,
                                     std::int64_t positions, const nn::Pass& pass) const override {
    if (config().task != Task::language) return Model::begin(source, sequences, positions, pass);
    auto state = std::make_unique<PrefixState>();
    state->sequences = sequences;
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    if (config().task != Task::language) return Model::next(state, tokens, pass);
    const NoGrad no_grad;
    auto& own = own_state<PrefixState>(config(), state);
    check_next_tokens(config(), tokens, own.sequences);
    own.tokens = own.tokens.defined() ? joined(own.tokens, tokens) : ops::clone(tokens);
    const Tensor x = input_.forward(own.tokens, 0, pass);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(x.size(0)), x.size(1));
    return head_.logits(summary(x, lengths, pass));
  }

 private:
  Head make_head(const ModelConfig& config) {
    const nn::Scope root = parameters().root();
    if (config.task == Task::tag) return label_head(config, root);
    return token_head(config, config.sizes.vocabulary, input_.table(), root);
  }

  static Tensor joined(const Tensor& a, const Tensor& b) {
    Tensor out = Tensor::empty({a.size(0), a.size(1) + b.size(1)}, a.dtype(), a.device());
    Tensor front = views::slice(out, 1, 0, a.size(1));
    Tensor back = views::slice(out, 1, a.size(1), out.size(1));
    ops::copy_into(front, a);
    ops::copy_into(back, b);
    return out;
  }

  // One vector for each sequence: what the forward states are at its end and the backward states at
  // its beginning, when both have read all of it. x: [N, T, C] -> [N, C]
  Tensor summary(const Tensor& x, const std::vector<std::int64_t>& lengths,
                 const nn::Pass& pass) const {
    Tensor length = Tensor::empty({x.size(0)}, DType::i64, x.device());
    std::vector<std::int64_t> ends = lengths;
    for (std::int64_t& end : ends) --end;
    if (!x.device().is_meta())
      length = Tensor::from<std::int64_t>({x.size(0)}, std::span<const std::int64_t>(lengths));
    const Tensor y = stack_.forward(x, length, pass).y;
    const std::int64_t width = x.size(2);
    const std::vector<std::int64_t> starts(ends.size(), 0);
    const Tensor read = ops::slice(at_positions(y, ends), 1, 0, width / 2);
    const Tensor read_back = ops::slice(at_positions(y, starts), 1, width / 2, width);
    return ops::concat(std::array{read, read_back}, 1);
  }

  // [B, T, C]: of each token, or of the prefix that ends with it.
  Tensor hidden(const Batch& batch, const nn::Pass& pass) const {
    const Tensor x = input_.forward(batch.tokens, 0, pass);
    if (config().task == Task::tag) return stack_.forward(x, batch.lengths, pass).y;
    const std::int64_t batches = x.size(0), tokens = x.size(1), width = x.size(2);
    // Prefix (b, t) has the tokens 0 .. t of sequence b, followed by padding.
    const Tensor each = ops::broadcast_to(ops::reshape(x, {batches, 1, tokens, width}),
                                          {batches, tokens, tokens, width});
    std::vector<std::int64_t> lengths;  // the meta device has no use for them
    if (!x.device().is_meta()) lengths.resize(static_cast<std::size_t>(batches * tokens));
    for (std::size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = static_cast<std::int64_t>(i) % tokens + 1;
    const Tensor y = summary(ops::reshape(each, {batches * tokens, tokens, width}), lengths, pass);
    return ops::reshape(y, {batches, tokens, width});
  }

  TokenInput input_;
  nn::ElmanStack stack_;
  Head head_;
};

}  // namespace

std::unique_ptr<Model> make_birnn(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<BiRnn>(config, std::move(parameters));
}

}  // namespace heddle::model
