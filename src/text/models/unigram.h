// Unigram: of all ways to cut a word into tokens the one with the best sum of scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/models/byte_trie.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"

namespace heddle::text {

class Unigram final : public Model {
 public:
  struct Scored {
    std::string name;
    double score = 0;
    bool in_text = true;
  };
  // `float_scores`: sums are rounded to f32 at every step, which decides between cuts that are
  // equally good. Ids are the places in the list. Of those that are not `in_text`, a text that
  // spells their name does not become the token: special tokens, and bytes where there is a
  // fallback to them.
  Unigram(const std::vector<Scored>& tokens, std::optional<std::int32_t> unknown,
          bool byte_fallback, bool float_scores = false);
  // The tokens' ids are those of `names`, whatever their places: tokens that have none there are
  // unknown, and so is a text without tokens unless it is a name (Marian's vocab.json).
  Unigram(const std::vector<Scored>& tokens, std::int32_t unknown, const NameIds& names,
          bool float_scores = false);

  void encode(std::string_view word, std::size_t offset,
              std::vector<std::int32_t>& ids) const override;

 private:
  // The best way to reach a byte: by the token that starts at `start`.
  struct Step {
    double score = 0;
    std::size_t start = 0;
    std::int32_t id = kNoToken;
  };
  static constexpr std::int32_t kNoToken = -1;
  static constexpr std::int32_t kUnknownToken = -2;

  double rounded(double score) const {
    return float_scores_ ? static_cast<double>(static_cast<float>(score)) : score;
  }
  std::vector<Step> best_steps(std::string_view word) const;
  void append_unknown(std::string_view text, std::size_t offset,
                      std::vector<std::int32_t>& ids) const;

  ByteTrie trie_;
  NameIds ids_;                        // of those in texts
  std::vector<std::int32_t> renamed_;  // ids of the places; empty: the places themselves
  std::vector<double> scores_;
  double unknown_score_ = 0;
  bool float_scores_ = false;
  std::optional<std::int32_t> unknown_;
  std::optional<ByteIds> bytes_;
};

}  // namespace heddle::text
