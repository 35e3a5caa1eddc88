#include "text/models/word_piece.h"

#include "text/unicode.h"

namespace heddle::text {

namespace {

bool has_more_characters(std::string_view word, std::size_t most) noexcept {
  if (word.size() <= most) return false;
  std::size_t count = 0;
  for (std::size_t at = 0; at < word.size(); at += code_point_at(word, at).bytes)
    if (++count > most) return true;
  return false;
}

}  // namespace

WordPiece::WordPiece(const NameIds& ids, std::optional<std::int32_t> unknown,
                     std::string_view prefix, std::size_t max_characters)
    : unknown_(unknown), max_characters_(max_characters) {
  for (const auto& [name, id] : ids)
    if (!name.empty()) trie_.add(name, id);
  inside_ = trie_.walk(ByteTrie::kRoot, prefix);
}

void WordPiece::encode(std::string_view word, std::size_t offset,
                       std::vector<std::int32_t>& ids) const {
  const std::size_t before = ids.size();
  if (!has_more_characters(word, max_characters_) && append_pieces(word, ids)) return;
  ids.resize(before);
  if (!unknown_) fail_unknown(word, offset);
  ids.push_back(*unknown_);
}

bool WordPiece::append_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
  for (std::size_t at = 0; at < word.size();) {
    std::uint32_t node = at == 0 ? ByteTrie::kRoot : inside_;
    std::size_t longest = at;
    std::int32_t found = -1;
    for (std::size_t end = at; end < word.size() && node != ByteTrie::kNowhere;) {
      node = trie_.child(node, word[end++]);
      if (node == ByteTrie::kNowhere || trie_.id(node) < 0) continue;
      longest = end;
      found = trie_.id(node);
    }
    if (found < 0) return false;
    ids.push_back(found);
    at = longest;
  }
  return true;
}

void WordLookup::encode(std::string_view word, std::size_t offset,
                        std::vector<std::int32_t>& ids) const {
  if (const auto id = find_name(ids_, word)) {
    ids.push_back(*id);
  } else if (unknown_) {
    ids.push_back(*unknown_);
  } else {
    fail_unknown(word, offset);
  }
}

}  // namespace heddle::text
