// Sequence to sequence with recurrent networks and attention (Bahdanau et al. 2015, Luong et al.
// 2015): a two-way Elman encoder reads, an Elman decoder writes. Its states look at the encoder's
// through attention, and both together give the vector that is classified:
//
//   h_u = decoder(begin y_1 .. y_u),   c_u = attention(h_u, encoder states),
//   v_u = tanh(W [c_u; h_u] + b),      p(y_{u+1}) = softmax(V v_u)
//
// v_u is not fed back into the decoder, so that all steps of a known target are computed at once.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/tape.h"
#include "model/decoding.h"
#include "model/kinds/kinds.h"
#include "model/kinds/recurrent.h"
#include "model/parts/head.h"
#include "model/parts/tokens.h"
#include "nn/attention/attention.h"
#include "nn/select_rows.h"
#include "ops/concat/concat.h"
#include "ops/dropout/dropout.h"
#include "ops/linear/linear.h"
#include "ops/unary/unary.h"

namespace heddle::model {

namespace {

// Dropout sites in the layer after the decoder's.
constexpr std::uint32_t kWeights = 0, kVector = 1;

// The encoder's results.
struct Reading {
  Tensor memory;               // [B, S, C]
  Tensor lengths;              // [B] or undefined
  std::vector<Tensor> states;  // of each encoder layer. [B, C]
};

struct Seq2SeqState final : DecodeState {
  explicit Seq2SeqState(nn::KvCache keys) : cache(std::move(keys)) {}

  HiddenStates hidden;
  nn::KvCache cache;  // keys and values of the memory, from the first step on
  Tensor memory;      // [B, S, C], until then
  Tensor lengths;     // [B] or undefined

  void reorder(std::span<const std::int64_t> rows) override {
    hidden.reorder(rows);
    cache.reorder(rows);
    for (Tensor* t : {&memory, &lengths})
      if (t->defined()) *t = nn::select_rows(*t, rows);
  }
  std::int64_t position() const override { return hidden.position; }
  std::int64_t bytes() const override {
    const std::int64_t waiting = memory.defined() ? static_cast<std::int64_t>(memory.bytes()) : 0;
    return hidden.bytes() + cache.bytes() + waiting;
  }
};

class RnnSeq2Seq final : public Model {
 public:
  RnnSeq2Seq(const ModelConfig& config, OwnedParameters parameters)
      : Model(config, std::move(parameters)),
        source_(config, config.sizes.vocabulary, scope("encoder")),
        encoder_(elman_config(config, {.layers = config.layers, .both_ways = true}),
                 scope("encoder")),
        target_(config, config.vocabulary_of_target(), scope("decoder"), shared_table(config)),
        decoder_(elman_config(config, {.layers = config.layers_of_decoder(),
                                       .first_layer = nn::kSecondStack}),
                 scope("decoder")),
        attention_(cross_attention(config), scope("attention")),
        head_(token_head(config, config.vocabulary_of_target(), target_.table(),
                         this->parameters().root())) {
    make_products(config);
  }

  Loss loss(const Batch& batch, const nn::Pass& pass, double label_smoothing) const override {
    return head_.loss(hidden(batch, pass), batch.targets, label_smoothing, {});
  }

  Tensor logits(const Batch& batch, const nn::Pass& pass) const override {
    return head_.logits(hidden(batch, pass));
  }

  std::unique_ptr<DecodeState> begin(const Batch& source, std::int64_t sequences,
                                     std::int64_t positions, const nn::Pass& pass) const override {
    check_source(config(), source, sequences);
    const NoGrad no_grad;
    Reading reading = read(source, pass);
    auto state = std::make_unique<Seq2SeqState>(
        nn::KvCache(attention_.config(), {sequences, positions, positions}, pass.precision,
                    parameters().options().device));
    state->hidden.layers = first_states(reading);
    state->memory = std::move(reading.memory);
    state->lengths = std::move(reading.lengths);
    return state;
  }

  Tensor next(DecodeState& state, const Tensor& tokens, const nn::Pass& pass) const override {
    const NoGrad no_grad;
    auto& own = own_state<Seq2SeqState>(config(), state);
    check_next_tokens(config(), tokens, own.hidden.layers.front().size(0));
    const Tensor x = target_.forward(tokens, own.hidden.position, writing(pass));
    nn::ElmanStackResult r = decoder_.forward(x, {}, pass, own.hidden.layers);
    nn::AttentionCall call;
    call.memory = own.memory;
    call.key_lengths = own.lengths;
    call.cache = &own.cache;
    const Tensor v = look(r.y, call, pass);
    own.memory = {};
    own.hidden.layers = std::move(r.last);
    own.hidden.position += tokens.size(1);
    return head_.logits(last_token(v));
  }

 private:
  nn::Scope scope(std::string_view name) { return parameters().root() / name; }

  // One table for both languages and the classifier where there is one vocabulary.
  Tensor shared_table(const ModelConfig& config) const {
    return config.shares_embedding() ? source_.table() : Tensor();
  }

  void make_products(const ModelConfig& config) {
    const std::int64_t width = config.width;
    for (std::int64_t i = 0; i < config.layers_of_decoder(); ++i) {
      const nn::Scope own = scope("bridge") / i;
      bridge_.push_back({own.weight("weight", {width, width}), {}});
      if (config.bias) bridge_.back().bias = own.zeros("bias", {width});
    }
    combine_.weight = scope("combine").weight("weight", {width, 2 * width});
    if (config.bias) combine_.bias = scope("combine").zeros("bias", {width});
  }

  // The decoder's embeddings drop by a stream of their own.
  static nn::Pass writing(const nn::Pass& pass) { return pass.layer(nn::kSecondStack - 1); }

  Reading read(const Batch& batch, const nn::Pass& pass) const {
    nn::ElmanStackResult r =
        encoder_.forward(source_.forward(batch.tokens, 0, pass), batch.lengths, pass);
    return {r.y, batch.lengths, std::move(r.last)};
  }

  // Decoder layer i begins with tanh(W s + b) of what encoder layer i ended with, or the encoder's
  // last one where the decoder has more.
  std::vector<Tensor> first_states(const Reading& reading) const {
    std::vector<Tensor> states;
    for (std::size_t i = 0; i < bridge_.size(); ++i) {
      const Tensor& end = reading.states[std::min(i, reading.states.size() - 1)];
      states.push_back(ops::tanh(ops::linear(end, bridge_[i].weight, bridge_[i].bias)));
    }
    return states;
  }

  // v = dropout(tanh(W [c; h] + b)). h: [B, U, C]
  Tensor look(const Tensor& h, nn::AttentionCall call, const nn::Pass& pass) const {
    const nn::Pass own = pass.layer(nn::kSecondStack + config().layers_of_decoder());
    call.dropout = own.site(kWeights);
    call.observer = own.observer;
    call.layer = own.number;
    const Tensor c = attention_.forward(h, call);
    const Tensor both = ops::concat(std::array{c, h}, 2);
    const Tensor v = ops::tanh(ops::linear(both, combine_.weight, combine_.bias));
    const auto key = own.site(kVector);
    return key && config().dropout > 0 ? ops::dropout(v, config().dropout, *key) : v;
  }

  // [B, U, C]
  Tensor hidden(const Batch& batch, const nn::Pass& pass) const {
    const Reading reading = read(batch, pass);
    const Tensor x = target_.forward(batch.target_tokens, 0, writing(pass));
    const Tensor h = decoder_.forward(x, batch.target_lengths, pass, first_states(reading)).y;
    nn::AttentionCall call;
    call.memory = reading.memory;
    call.key_lengths = reading.lengths;
    return look(h, call, pass);
  }

  struct Product {
    Tensor weight, bias;
  };

  TokenInput source_;
  nn::ElmanStack encoder_;
  TokenInput target_;
  nn::ElmanStack decoder_;
  nn::Attention attention_;
  Head head_;
  std::vector<Product> bridge_;
  Product combine_;
};

}  // namespace

std::unique_ptr<Model> make_rnn_seq2seq(const ModelConfig& config, OwnedParameters parameters) {
  return std::make_unique<RnnSeq2Seq>(config, std::move(parameters));
}

}  // namespace heddle::model
