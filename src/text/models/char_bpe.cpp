#include "text/models/char_bpe.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "text/unicode.h"

namespace heddle::text {

CharBpe::CharBpe(CharBpeParts parts)
    : parts_(std::move(parts)), table_(parts_.merges), junctions_(parts_.merges.size()) {
  bytes_.fill(-1);
  if (parts_.byte_fallback) bytes_ = byte_fallback_ids(parts_.ids);
  const bool knows_all =
      std::none_of(bytes_.begin(), bytes_.end(), [](std::int32_t id) { return id < 0; });
  cuts_ = (knows_all || !parts_.fuse_unknown) && !parts_.ignore_merges &&
          parts_.continuing_prefix.empty() && parts_.end_suffix.empty() && merges_stay_in_text();
  if (!cuts_) return;
  std::unordered_set<std::int32_t> results;
  for (const Merge& merge : parts_.merges) results.insert(merge.result);
  for (const auto& [name, id] : parts_.ids)
    if (results.contains(id)) junctions_.add(name);
}

// Whether tokens that do not stand for the characters of their names are never merged.
bool CharBpe::merges_stay_in_text() const {
  std::unordered_set<std::int32_t> others(bytes_.begin(), bytes_.end());
  if (parts_.unknown) others.insert(*parts_.unknown);
  return std::none_of(parts_.merges.begin(), parts_.merges.end(), [&](const Merge& merge) {
    return others.contains(merge.left) || others.contains(merge.right);
  });
}

std::size_t CharBpe::part_end(std::string_view word, std::size_t at) const {
  return cuts_ ? junctions_.part_end(word, at) : word.size();
}

std::optional<std::int32_t> CharBpe::character_id(std::string_view character, bool is_first,
                                                  bool is_last) const {
  const bool prefixed = !is_first && !parts_.continuing_prefix.empty();
  const bool suffixed = is_last && !parts_.end_suffix.empty();
  if (!prefixed && !suffixed) return find_name(parts_.ids, character);
  std::string name = prefixed ? parts_.continuing_prefix : std::string();
  name += character;
  if (suffixed) name += parts_.end_suffix;
  return find_name(parts_.ids, name);
}

// `ids` is empty: merges work on all of it.
void CharBpe::encode(std::string_view word, std::size_t offset,
                     std::vector<std::int32_t>& ids) const {
  if (parts_.ignore_merges) {
    if (const auto id = find_name(parts_.ids, word)) {
      ids.push_back(*id);
      return;
    }
  }
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, code_point_at(word, at).bytes);
    const std::size_t next = at + character.size();
    const auto id = character_id(character, at == 0, next == word.size());
    bool is_unknown = false;
    if (id) {
      ids.push_back(*id);
    } else if (!parts_.byte_fallback || !append_bytes(bytes_, character, ids)) {
      if (!parts_.unknown) fail_unknown(character, offset + at);
      if (!after_unknown || !parts_.fuse_unknown) ids.push_back(*parts_.unknown);
      is_unknown = true;
    }
    after_unknown = is_unknown;
    at = next;
  }
  table_.apply(ids);
}

}  // namespace heddle::text
