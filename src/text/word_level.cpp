#include "text/word_level.h"

#include <unordered_set>
#include <utility>

#include "heddle/error.h"
#include "io/utf8.h"
#include "text/json/json_write.h"
#include "text/split/word_end.h"
#include "text/unicode.h"

namespace heddle::text {

WordLevel::WordLevel(std::vector<Piece> pieces, std::vector<AddedToken> added, Unit unit,
                     std::optional<std::int32_t> unknown)
    : Tokenizer(std::move(pieces), std::move(added), unit == Unit::character ? "" : " "),
      unit_(unit) {
  ascii_.fill(-1);
  std::unordered_set<std::int32_t> skipped;
  for (const AddedToken& token : this->added()) skipped.insert(token.id);
  for (std::int32_t id = 0; id < vocabulary(); ++id) {
    if (skipped.contains(id)) continue;
    const std::string_view bytes = this->pieces()[static_cast<std::size_t>(id)].bytes;
    ids_[bytes] = id;
    if (bytes.size() == 1 && static_cast<unsigned char>(bytes[0]) < ascii_.size())
      ascii_[static_cast<unsigned char>(bytes[0])] = id;
  }
  if (unknown) set_unknown(*unknown);
}

std::string WordLevel::to_json() const {
  return word_level_json(pieces(), added(), unit_, unknown());
}

void WordLevel::encode_plain(std::string_view text, std::size_t offset,
                             std::vector<std::int32_t>& ids) const {
  check_utf8(text, "text", offset);
  if (unit_ == Unit::character) {
    encode_characters(text, offset, ids);
  } else {
    encode_words(text, offset, ids);
  }
}

void WordLevel::encode_characters(std::string_view text, std::size_t offset,
                                  std::vector<std::int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < ascii_.size() && ascii_[byte] >= 0) {
      ids.push_back(ascii_[byte]);
      ++at;
      continue;
    }
    const std::size_t bytes = code_point_at(text, at).bytes;
    ids.push_back(lookup(text.substr(at, bytes), offset + at));
    at += bytes;
  }
}

void WordLevel::encode_words(std::string_view text, std::size_t offset,
                             std::vector<std::int32_t>& ids) const {
  for (std::size_t at = 0; at < text.size();) {
    const Run run = space_run(text, at);
    if (!run.is_space) ids.push_back(lookup(text.substr(at, run.end - at), offset + at));
    at = run.end;
  }
}

std::int32_t WordLevel::lookup(std::string_view piece, std::size_t offset) const {
  if (const std::int32_t* const id = ids_.find(piece)) return *id;
  if (unknown()) return *unknown();
  constexpr std::size_t shown = 64;
  fail(ErrorCode::invalid_argument, "text",
       (unit_ == Unit::character ? "the character at byte " : "the word at byte ") +
           std::to_string(offset) + " is not in the vocabulary, which has no unknown token",
       unit_ == Unit::character ? "characters of the text that it was made of"
                                : "words of the text that it was made of",
       readable(piece.substr(0, shown)));
}

void check_utf8(std::string_view text, std::string_view where, std::size_t at) {
  const std::size_t broken = io::first_invalid_utf8(text);
  if (broken == std::string_view::npos) return;
  fail(ErrorCode::invalid_argument, where,
       "not UTF-8 at byte " + std::to_string(at + broken) +
           ", which a tokenizer of characters or words needs",
       "UTF-8, or a byte-level tokenizer (byte, bpe)", readable(text.substr(broken, 1)));
}

}  // namespace heddle::text
