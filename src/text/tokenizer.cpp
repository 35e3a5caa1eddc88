#include "text/tokenizer.h"

#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "text/special.h"
#include "text/unicode.h"

namespace heddle::text {

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(std::vector<Piece> pieces, std::vector<AddedToken> added,
                     std::string separator)
    : pieces_(std::move(pieces)),
      added_(std::move(added)),
      special_(pieces_.size()),
      separator_(std::move(separator)) {
  for (const AddedToken& token : added_) {
    special_.at(static_cast<std::size_t>(token.id)) = token.special;
    (token.normalized ? in_normalized_ : as_given_).add(token, token.content);
    if (token.content == kPadName) pad_ = token.id;
    if (token.content == kBeginName) begin_ = token.id;
    if (token.content == kEndName) end_ = token.id;
    if (token.content == kUnknownName) unknown_ = token.id;
    if (token.content == kMaskName) mask_ = token.id;
  }
}

void Tokenizer::prepare_search(const std::function<std::string(std::string_view)>& normalize) {
  in_normalized_ = {};
  for (const AddedToken& token : added_)
    if (token.normalized) in_normalized_.add(token, normalize(token.content));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialsInText specials) const {
  std::vector<std::int32_t> ids;
  encode_between(text, 0, Search::as_given, specials == SpecialsInText::recognised, ids);
  return ids;
}

// The text between the tokens of the first search is normalized, and searched for those of the
// second; what lies between those is the model's.
void Tokenizer::encode_between(std::string_view text, std::size_t offset, Search search,
                               bool with_special, std::vector<std::int32_t>& ids) const {
  const bool is_first = search == Search::as_given;
  const AddedTokens& tokens = is_first ? as_given_ : in_normalized_;
  const auto encode_rest = [&](std::size_t from, std::size_t to) {
    if (from >= to) return;
    const std::string_view rest = text.substr(from, to - from);
    if (!is_first) {
      encode_plain(rest, offset + from, ids);
    } else if (const std::optional<std::string> changed = normalized(rest)) {
      encode_between(*changed, offset + from, Search::normalized, with_special, ids);
    } else {
      encode_between(rest, offset + from, Search::normalized, with_special, ids);
    }
  };
  std::size_t done = 0;
  while (const auto place = tokens.find(text, done, with_special)) {
    encode_rest(done, place->begin);
    ids.push_back(place->id);
    done = place->end;
  }
  encode_rest(done, text.size());
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
