#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "text/process/added_tokens.h"
#include "text/special.h"
#include "text/unicode.h"

namespace heddle::text {

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(std::vector<Piece> pieces, std::vector<AddedToken> added,
                     std::string separator)
    : pieces_(std::move(pieces)),
      added_(std::move(added)),
      as_given_(std::make_unique<AddedTokens>()),
      in_normalized_(std::make_unique<AddedTokens>()),
      special_(pieces_.size()),
      separator_(std::move(separator)) {
  for (const AddedToken& token : added_) {
    special_.at(static_cast<std::size_t>(token.id)) = token.special;
    (token.normalized ? in_normalized_ : as_given_)->add(token, token.content);
    if (token.content == kPadName) specials_.pad = token.id;
    if (token.content == kBeginName) specials_.begin = token.id;
    if (token.content == kEndName) specials_.end = token.id;
    if (token.content == kUnknownName) specials_.unknown = token.id;
    if (token.content == kMaskName) specials_.mask = token.id;
  }
}

void Tokenizer::prepare_search(const std::function<std::string(std::string_view)>& normalize) {
  *in_normalized_ = {};
  for (const AddedToken& token : added_)
    if (token.normalized) in_normalized_->add(token, normalize(token.content));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialsInText specials) const {
  std::vector<std::int32_t> ids;
  encode_between(text, 0, Search::as_given,
                 {.anywhere = specials == SpecialsInText::recognised, .plain = {}}, ids);
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            std::span<const TextRange> plain) const {
  std::vector<std::int32_t> ids;
  encode_between(text, 0, Search::as_given, {.anywhere = true, .plain = plain}, ids);
  return ids;
}

// The text between the tokens of the first search is normalized, and searched for those of the
// second; what lies between those is the model's.
void Tokenizer::encode_between(std::string_view text, std::size_t offset, Search search,
                               const SpecialPlaces& specials,
                               std::vector<std::int32_t>& ids) const {
  const bool is_first = search == Search::as_given;
  const AddedTokens& tokens = is_first ? *as_given_ : *in_normalized_;
  const auto encode_rest = [&](std::size_t from, std::size_t to) {
    if (from >= to) return;
    if (is_first) {
      encode_given(text, {from, to}, specials, ids);
    } else {
      encode_plain(text.substr(from, to - from), offset + from, ids);
    }
  };
  std::size_t done = 0;
  while (const auto place = tokens.find(text, done, specials)) {
    encode_rest(done, place->begin);
    ids.push_back(place->id);
    done = place->end;
  }
  encode_rest(done, text.size());
}

// Normalized text has no ranges any more. Where that matters, because special tokens are searched
// for in it, what people wrote is taken apart from the rest.
void Tokenizer::encode_given(std::string_view text, TextRange part, const SpecialPlaces& specials,
                             std::vector<std::int32_t>& ids) const {
  const auto encode_to = [&](std::size_t end, bool with_special) {
    end = std::min(end, part.end);
    if (end <= part.begin) return;
    encode_normalized(text.substr(part.begin, end - part.begin), part.begin, with_special, ids);
    part.begin = end;
  };
  if (in_normalized_->has_special()) {
    for (const TextRange& range : specials.plain) {
      encode_to(range.begin, specials.anywhere);
      encode_to(range.end, false);
    }
  }
  encode_to(part.end, specials.anywhere);
}

void Tokenizer::encode_normalized(std::string_view text, std::size_t offset, bool with_special,
                                  std::vector<std::int32_t>& ids) const {
  const SpecialPlaces specials{.anywhere = with_special, .plain = {}};
  if (const std::optional<std::string> changed = normalized(text)) {
    encode_between(*changed, offset, Search::normalized, specials, ids);
  } else {
    encode_between(text, offset, Search::normalized, specials, ids);
  }
}

// An added token must not lie across a cut, and neither look nor reach beyond one.
Cuts Tokenizer::cuts(SpecialsInText specials) const {
  const Cuts plain = plain_cuts();
  bool any = false, across_line = plain == Cuts::spaces;
  for (const AddedToken& token : added_) {
    if (token.special && specials == SpecialsInText::plain) continue;
    any = true;
    across_line = across_line || token.lstrip || token.content.find('\n') != std::string::npos;
    const std::size_t first_ink = token.content.find_first_not_of(" \t\r\n\v\f");
    const bool across_space =
        first_ink != std::string::npos && token.content.find(' ', first_ink) != std::string::npos;
    // At the beginning of a piece it would not see what it touches.
    const bool looks_back = token.single_word && token.content.starts_with(' ');
    if (token.rstrip || across_space || looks_back) return Cuts::nowhere;
  }
  if (!any || plain == Cuts::nowhere) return plain;
  return across_line ? Cuts::spaces : Cuts::spaces_and_lines;
}

std::optional<std::int32_t> Tokenizer::find(std::string_view name) const {
  for (const AddedToken& token : added_)
    if (token.content == name) return token.id;
  for (std::size_t id = 0; id < pieces_.size(); ++id)
    if (pieces_[id].name == name && !name.empty()) return static_cast<std::int32_t>(id);
  return std::nullopt;
}

std::optional<std::string> Tokenizer::normalized(std::string_view /*text*/) const {
  return std::nullopt;
}

const Piece& Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocabulary())
    fail(ErrorCode::out_of_range, "tokenizer", "no such token",
         "an id from 0 to " + std::to_string(vocabulary() - 1), std::to_string(id));
  return pieces_[static_cast<std::size_t>(id)];
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, ShowSpecials specials) const {
  std::vector<std::int32_t> shown;
  shown.reserve(ids.size());
  for (const std::int32_t id : ids) {
    piece(id);
    if (specials == ShowSpecials::yes || !special_[static_cast<std::size_t>(id)])
      shown.push_back(id);
  }
  return joined(shown);
}

std::string Tokenizer::joined(std::span<const std::int32_t> ids) const {
  std::string text;
  bool first = true;
  for (const std::int32_t id : ids) {
    const Piece& part = pieces_[static_cast<std::size_t>(id)];
    if (part.name.empty()) continue;
    if (!first) text += separator_;
    first = false;
    text += part.bytes;
  }
  return text;
}

std::string Tokenizer::token(std::int32_t id) const { return readable(piece(id).bytes); }

bool Tokenizer::is_special(std::int32_t id) const {
  piece(id);
  return special_[static_cast<std::size_t>(id)];
}

void Tokenizer::save(const std::filesystem::path& path) const {
  io::write_file_atomic(path.string(), to_json());
}

}  // namespace heddle::text
