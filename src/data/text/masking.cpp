#include "data/text/masking.h"

#include <cmath>

#include "model/batch.h"

namespace heddle::data {
namespace {

constexpr std::uint32_t share_of_bits(double share) {
  return static_cast<std::uint32_t>(share * 0x1p32);
}

}  // namespace

Masking::Masking(const text::Tokenizer& tokenizer, std::int32_t mask, double share)
    : mask_(mask),
      threshold_(static_cast<std::uint64_t>(std::llround(share * 0x1p32))),
      special_(static_cast<std::size_t>(tokenizer.vocabulary())) {
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    special_[static_cast<std::size_t>(id)] = tokenizer.is_special(id);
    if (!tokenizer.is_special(id)) ordinary_.push_back(id);
  }
  if (ordinary_.empty()) ordinary_.push_back(mask);
}

std::int64_t Masking::apply(std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                            const RandomKey& key, std::uint64_t first) const {
  std::int64_t chosen = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const PhiloxBlock random = philox(key, first + i);
    const std::int32_t token = tokens[i];
    targets[i] = model::kIgnore;
    if (random[0] >= threshold_ || special_[static_cast<std::size_t>(token)]) continue;
    targets[i] = token;
    ++chosen;
    if (random[1] < share_of_bits(0.8))
      tokens[i] = mask_;
    else if (random[1] < share_of_bits(0.9))
      tokens[i] = ordinary_[(random[2] * std::uint64_t{ordinary_.size()}) >> 32];
  }
  return chosen;
}

void Masking::hide(std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                   std::size_t at) const {
  targets[at] = tokens[at];
  tokens[at] = mask_;
}

}  // namespace heddle::data
