#include "text/process/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace heddle::text {

namespace {

// The code point that ends at `at`; a byte that is not UTF-8 where there is none.
CodePoint code_point_before(std::string_view text, std::size_t at) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(at, 4); ++back) {
    if ((static_cast<unsigned char>(text[at - back]) & 0xC0) == 0x80) continue;
    const CodePoint c = code_point_at(text, at - back);
    if (c.bytes == back) return c;
    break;
  }
  return {};
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) noexcept {
  return (begin > 0 && is_word_character(code_point_before(text, begin).value)) ||
         (end < text.size() && is_word_character(code_point_at(text, end).value));
}

}  // namespace

bool SpecialPlaces::allow(std::size_t begin, std::size_t end) const noexcept {
  if (!anywhere) return false;
  const auto next = std::partition_point(
      plain.begin(), plain.end(), [&](const TextRange& range) { return range.end <= begin; });
  return next == plain.end() || next->begin >= end;
}

void AddedTokens::add(const AddedToken& token, std::string_view content) {
  if (content.empty()) return;
  trie_.add(content, static_cast<std::int32_t>(tokens_.size()));
  tokens_.push_back(token);
  has_special_ = has_special_ || token.special;
  bool& is_first = is_first_[static_cast<unsigned char>(content[0])];
  if (!is_first) first_bytes_ += content[0];
  is_first = true;
}

// One byte is the usual case, and memchr ten times as fast.
std::size_t AddedTokens::next_start(std::string_view text, std::size_t at) const noexcept {
  if (first_bytes_.empty()) return text.size();
  if (first_bytes_.size() == 1) return std::min(text.find(first_bytes_[0], at), text.size());
  while (at < text.size() && !is_first_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

AddedTokens::Candidate AddedTokens::longest(std::string_view text, std::size_t at) const noexcept {
  Candidate best;
  std::uint32_t node = ByteTrie::kRoot;
  while (at < text.size()) {
    node = trie_.child(node, text[at++]);
    if (node == ByteTrie::kNowhere) break;
    const std::int32_t place = trie_.id(node);
    if (place >= 0) best = {at, &tokens_[static_cast<std::size_t>(place)]};
  }
  return best;
}

std::optional<AddedTokens::Place> AddedTokens::find(std::string_view text, std::size_t from,
                                                    const SpecialPlaces& specials) const {
  for (std::size_t at = next_start(text, from); at < text.size(); at = next_start(text, at)) {
    const Candidate found = longest(text, at);
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    const bool is_passed = (found.token->special && !specials.allow(at, found.end)) ||
                           (found.token->single_word && touches_word(text, at, found.end));
    if (is_passed) {
      at = found.end;
      continue;
    }
    Place place{at, found.end, found.token->id};
    while (found.token->lstrip && place.begin > from) {
      const CodePoint c = code_point_before(text, place.begin);
      if (!is_white_space(c.value) || place.begin - from < c.bytes) break;
      place.begin -= c.bytes;
    }
    while (found.token->rstrip && place.end < text.size()) {
      const CodePoint c = code_point_at(text, place.end);
      if (!is_white_space(c.value)) break;
      place.end += c.bytes;
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace heddle::text
