// The tokens that a masked model has to guess: a share of them; of these 80 % are replaced by
// <mask>, 10 % by a random token and 10 % are left as they are (Devlin et al. 2018).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/random.h"
#include "text/tokenizer.h"

namespace heddle::data {

class Masking {
 public:
  Masking(const text::Tokenizer& tokenizer, std::int32_t mask, double share);

  // Hides tokens and writes what they were to `targets`, model::kIgnore elsewhere. Special tokens
  // are left alone. `first` is the place of tokens[0] in the random stream. Returns how many were
  // chosen.
  std::int64_t apply(std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                     const RandomKey& key, std::uint64_t first) const;

  // Hides tokens[at], whatever it is: a batch without any target would have no loss.
  void hide(std::span<std::int32_t> tokens, std::span<std::int32_t> targets, std::size_t at) const;

 private:
  std::int32_t mask_;
  std::uint64_t threshold_;             // of 32 random bits
  std::vector<std::int32_t> ordinary_;  // tokens that may replace another
  std::vector<bool> special_;
};

}  // namespace heddle::data
