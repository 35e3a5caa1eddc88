#include "data/tokens.h"

#include <algorithm>

namespace heddle::data {

void TokenStore::reserve(std::int64_t count) {
  if (wide_)
    wide_tokens_.reserve(static_cast<std::size_t>(count));
  else
    tokens_.reserve(static_cast<std::size_t>(count));
}

void TokenStore::append(std::span<const std::int32_t> tokens) {
  if (wide_) {
    wide_tokens_.insert(wide_tokens_.end(), tokens.begin(), tokens.end());
    return;
  }
  const std::size_t before = tokens_.size();
  tokens_.resize(before + tokens.size());
  std::transform(tokens.begin(), tokens.end(), tokens_.data() + before,
                 [](std::int32_t token) { return static_cast<std::uint16_t>(token); });
}

void TokenStore::append(const TokenStore& other) {
  tokens_.insert(tokens_.end(), other.tokens_.begin(), other.tokens_.end());
  wide_tokens_.insert(wide_tokens_.end(), other.wide_tokens_.begin(), other.wide_tokens_.end());
}

void TokenStore::copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const {
  if (wide_)
    std::copy_n(wide_tokens_.data() + begin, count, out);
  else
    std::copy_n(tokens_.data() + begin, count, out);
}

std::int32_t TokenStore::at(std::int64_t i) const {
  const auto place = static_cast<std::size_t>(i);
  return wide_ ? wide_tokens_[place] : tokens_[place];
}

std::int64_t Sequences::length(std::int64_t i) const {
  const auto place = static_cast<std::size_t>(i);
  return starts_[place + 1] - starts_[place];
}

void Sequences::add(std::span<const std::int32_t> sequence) {
  tokens_.append(sequence);
  starts_.push_back(tokens_.size());
}

void Sequences::copy(std::int64_t i, std::int32_t* out) const {
  tokens_.copy(starts_[static_cast<std::size_t>(i)], length(i), out);
}

}  // namespace heddle::data
