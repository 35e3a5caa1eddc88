#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "heddle/error.h"
#include "io/files/file.h"
#include "text/special.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

std::size_t group_of(const AddedToken& token) { return token.normalized ? 1 : 0; }

// One byte is the usual case, and memchr ten times as fast.
std::size_t find_any(std::string_view text, std::string_view bytes, std::size_t from) {
  return bytes.size() == 1 ? text.find(bytes[0], from) : text.find_first_of(bytes, from);
}

}  // namespace

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(std::vector<Piece> pieces, std::vector<AddedToken> added,
                     std::string separator)
    : pieces_(std::move(pieces)),
      added_(std::move(added)),
      special_(pieces_.size()),
      separator_(std::move(separator)) {
  for (const AddedToken& token : added_) {
    special_.at(static_cast<std::size_t>(token.id)) = token.special;
    Group& group = groups_[group_of(token)];
    group.tokens.push_back(token);
    if (group.first_bytes.find(token.content[0]) == std::string::npos)
      group.first_bytes += token.content[0];
    if (token.content == kPadName) pad_ = token.id;
    if (token.content == kBeginName) begin_ = token.id;
    if (token.content == kEndName) end_ = token.id;
    if (token.content == kUnknownName) unknown_ = token.id;
    if (token.content == kMaskName) mask_ = token.id;
  }
  for (Group& group : groups_)
    std::sort(group.tokens.begin(), group.tokens.end(),
              [](const AddedToken& a, const AddedToken& b) {
                return a.content.size() > b.content.size();
              });
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialsInText specials) const {
  std::vector<std::int32_t> ids;
  if (specials == SpecialsInText::recognised) {
    encode_group(text, 0, 0, ids);
  } else if (!text.empty()) {
    encode_plain(text, 0, ids);
  }
  return ids;
}

const AddedToken* Tokenizer::match(std::string_view text, std::size_t at,
                                   const Group& group) const {
  const std::string_view rest = text.substr(at);
  for (const AddedToken& token : group.tokens)
    if (rest.starts_with(token.content)) return &token;
  return nullptr;
}

// The text between the tokens of one group is searched for those of the next.
void Tokenizer::encode_group(std::string_view text, std::size_t offset, std::size_t group,
                             std::vector<std::int32_t>& ids) const {
  if (text.empty()) return;
  if (group == groups_.size()) {
    encode_plain(text, offset, ids);
    return;
  }
  const Group& tokens = groups_[group];
  std::size_t done = 0;
  std::size_t at = find_any(text, tokens.first_bytes, 0);
  while (at < text.size()) {
    const AddedToken* const token = match(text, at, tokens);
    if (token != nullptr) {
      encode_group(text.substr(done, at - done), offset + done, group + 1, ids);
      ids.push_back(token->id);
      done = at + token->content.size();
    }
    at = find_any(text, tokens.first_bytes, std::max(at + 1, done));
  }
  encode_group(text.substr(done), offset + done, group + 1, ids);
}

const Piece& Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocabulary())
    fail(ErrorCode::out_of_range, "tokenizer", "no such token",
         "an id from 0 to " + std::to_string(vocabulary() - 1), std::to_string(id));
  return pieces_[static_cast<std::size_t>(id)];
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, ShowSpecials specials) const {
  std::string text;
  bool first = true;
  for (const std::int32_t id : ids) {
    const Piece& part = piece(id);
    if (specials == ShowSpecials::no && special_[static_cast<std::size_t>(id)]) continue;
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
