// A language model for tests: the scores after a sequence are random numbers that depend on all of
// its tokens (and on the source, where it translates). So a state whose rows were mixed up, or
// which lost a token, gives different scores, and every sequence can be enumerated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/random.h"
#include "model/model.h"

namespace heddle::generate::testing {

struct TreeOptions {
  std::int64_t vocabulary = 4;
  std::int64_t context = 64;
  std::uint64_t seed = 1;
  double spread = 3;  // of the scores
  bool learned_positions = false;
  bool translate = false;
};

inline model::ModelConfig config_of(const TreeOptions& o) {
  model::ModelConfig c;
  c.kind = o.translate ? model::Kind::encoder_decoder : model::Kind::decoder;
  c.task = o.translate ? model::Task::translate : model::Task::language;
  c.sizes.vocabulary = o.vocabulary;
  c.sizes.context = o.context;
  if (o.learned_positions) c.attention.position = nn::LearnedPosition{o.context};
  return c;
}

class TreeModel : public model::Model {
 public:
  using History = std::vector<std::int32_t>;

  explicit TreeModel(const TreeOptions& options)
      : Model(config_of(options), std::make_unique<nn::Parameters>(nn::ParameterOptions{})),
        options_(options) {}

  model::Loss loss(const model::Batch&, const nn::Pass&, double) const override { return {}; }

  // Scores after a sequence. The seed of Philox is a hash of it (FNV-1a).
  std::vector<float> scores(const History& history) const {
    std::uint64_t hash = 0xCBF29CE484222325u ^ options_.seed;
    for (const std::int32_t token : history)
      hash = (hash ^ static_cast<std::uint64_t>(token + 1)) * 0x100000001B3u;
    std::vector<float> result;
    for (std::int64_t i = 0; i < options_.vocabulary; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const float unit = unit_float(philox({hash, 0, 0}, index)[0]);
      result.push_back(static_cast<float>(options_.spread) * unit);
    }
    return result;
  }

  Tensor logits(const model::Batch& batch, const nn::Pass&) const override {
    const std::int64_t rows = batch.tokens.size(0), length = batch.tokens.size(1);
    const auto ids = batch.tokens.to_vector<std::int32_t>();
    std::vector<float> all;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t t = 0; t < length; ++t) {
        const auto first = ids.begin() + r * length;
        append(all, scores(History(first, first + t + 1)));
      }
    return Tensor::from<float>({rows, length, options_.vocabulary}, all);
  }

  std::unique_ptr<model::DecodeState> begin(const model::Batch& source, std::int64_t sequences,
                                            std::int64_t positions,
                                            const nn::Pass&) const override {
    auto state = std::make_unique<State>();
    state->positions = positions;
    for (std::int64_t i = 0; i < sequences; ++i)
      state->rows.push_back(options_.translate ? sentence(source, i) : History());
    ++states;
    return state;
  }

  Tensor next(model::DecodeState& state, const Tensor& tokens, const nn::Pass&) const override {
    auto& own = dynamic_cast<State&>(state);
    if (tokens.size(0) != static_cast<std::int64_t>(own.rows.size()))
      fail(ErrorCode::shape_mismatch, "tree model", "rows", std::to_string(own.rows.size()),
           std::to_string(tokens.size(0)));
    own.read += tokens.size(1);
    if (own.read > own.positions)
      fail(ErrorCode::out_of_range, "tree model", "positions", std::to_string(own.positions),
           std::to_string(own.read));
    const auto ids = tokens.to_vector<std::int32_t>();
    std::vector<float> all;
    for (std::size_t r = 0; r < own.rows.size(); ++r) {
      const auto first = ids.begin() + static_cast<std::int64_t>(r) * tokens.size(1);
      own.rows[r].insert(own.rows[r].end(), first, first + tokens.size(1));
      append(all, scores(own.rows[r]));
    }
    calls += 1;
    tokens_read += tokens.elements();
    return Tensor::from<float>({tokens.size(0), options_.vocabulary}, all);
  }

  // Counters, for tests that work is done only once.
  mutable std::int64_t states = 0, calls = 0, tokens_read = 0;

 private:
  struct State final : model::DecodeState {
    std::vector<History> rows;
    std::int64_t read = 0, positions = 0;

    void reorder(std::span<const std::int64_t> order) override {
      std::vector<History> next;
      for (const std::int64_t row : order) next.push_back(rows.at(static_cast<std::size_t>(row)));
      rows = std::move(next);
    }
    std::int64_t position() const override { return read; }
    bool rewind(std::int64_t position) override {
      for (History& row : rows) row.resize(row.size() - static_cast<std::size_t>(read - position));
      read = position;
      return true;
    }
    std::int64_t bytes() const override { return 0; }
  };

  static History sentence(const model::Batch& source, std::int64_t row) {
    const auto ids = source.tokens.to_vector<std::int32_t>();
    const auto first = ids.begin() + row * source.tokens.size(1);
    const std::int64_t length = source.lengths.defined()
                                    ? source.lengths.to_vector<std::int64_t>()[row]
                                    : source.tokens.size(1);
    return {first, first + length};
  }

  static void append(std::vector<float>& all, const std::vector<float>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  TreeOptions options_;
};

}  // namespace heddle::generate::testing
