#include <utility>
#include <vector>

#include "model/kinds/kinds.h"
#include "model/model.h"
#include "ops/concat/concat.h"

namespace heddle::model {

Tensor Model::embed(const Batch&, Pooling, const nn::Pass&) const {
  fail(ErrorCode::unsupported, to_string(config_.kind), "vectors of whole texts",
       "an encoder of tokens", "task " + std::string(to_string(config_.task)));
}

std::unique_ptr<DecodeState> Model::begin(const Batch&, std::int64_t, std::int64_t,
                                          const nn::Pass&) const {
  fail(ErrorCode::unsupported, to_string(config_.kind), "generation", "a model that writes tokens",
       "task " + std::string(to_string(config_.task)));
}

Tensor Model::next(DecodeState&, const Tensor&, const nn::Pass&) const {
  fail(ErrorCode::unsupported, to_string(config_.kind), "generation", "a model that writes tokens",
       "task " + std::string(to_string(config_.task)));
}

// For kinds that know no better: one after the other.
Tensor Model::next_each(std::span<const NextTokens> sequences, const nn::Pass& pass) const {
  std::vector<Tensor> rows;
  rows.reserve(sequences.size());
  const auto read = [&](const NextTokens& s, std::size_t begin, std::size_t end) {
    const auto count = static_cast<std::int64_t>(end - begin);
    const auto tokens =
        Tensor::from<std::int32_t>({1, count}, s.tokens.subspan(begin, end - begin));
    rows.push_back(next(*s.state, tokens, pass));
  };
  for (const NextTokens& s : sequences) {
    const std::size_t first = s.tokens.size() - s.scores + 1;  // read before the first scores
    read(s, 0, first);
    for (std::size_t at = first; at < s.tokens.size(); ++at) read(s, at, at + 1);
  }
  return ops::concat(rows, 0);  // [Σ scores, V]
}

std::unique_ptr<Model> build_model(const ModelConfig& config, const BuildOptions& options) {
  validate(config);
  nn::ParameterOptions store;
  store.seed = options.seed;
  store.init = init_options(config);
  store.dtype = options.dtype;
  store.device = options.device;
  store.source = options.source;
  auto parameters = std::make_unique<nn::Parameters>(store);
  switch (config.kind) {
    case Kind::decoder: return make_decoder(config, std::move(parameters));
    case Kind::encoder: return make_encoder(config, std::move(parameters));
    case Kind::encoder_decoder: return make_encoder_decoder(config, std::move(parameters));
    case Kind::vit: return make_vit(config, std::move(parameters));
    case Kind::rnn: return make_rnn(config, std::move(parameters));
    case Kind::birnn: return make_birnn(config, std::move(parameters));
    case Kind::rnn_seq2seq: return make_rnn_seq2seq(config, std::move(parameters));
  }
  fail(ErrorCode::invalid_argument, "model", "kind", "a known kind");
}

}  // namespace heddle::model
