#include "text/bpe/byte_bpe.h"

#include <utility>

#include "heddle/error.h"
#include "text/json/json_write.h"
#include "text/split.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

bool are_byte_values(const std::array<std::int32_t, 256>& ids) {
  for (std::size_t byte = 0; byte < ids.size(); ++byte)
    if (ids[byte] != static_cast<std::int32_t>(byte)) return false;
  return true;
}

}  // namespace

ByteBpe::ByteBpe(std::vector<Piece> pieces, std::vector<AddedToken> added, BpeModel model)
    : Tokenizer(std::move(pieces), std::move(added), ""),
      model_(std::move(model)),
      table_(model_.merges),
      is_bytes_(model_.merges.empty() && are_byte_values(model_.byte_ids)) {
  if (model_.unknown) set_unknown(*model_.unknown);
}

ByteBpe::~ByteBpe() = default;

std::string ByteBpe::to_json() const { return bpe_json(pieces(), added(), model_); }

void ByteBpe::encode_plain(std::string_view text, std::size_t offset,
                           std::vector<std::int32_t>& ids) const {
  std::string prefixed;
  if (model_.prefix_space && text[0] != ' ') {
    prefixed = " " + std::string(text);
    text = prefixed;
  }
  if (model_.merges.empty() && !model_.fuse_unknown) {
    ids.reserve(ids.size() + text.size());
    encode_bytes(text, offset, ids);
    return;
  }
  std::unique_ptr<Workspace> workspace = borrow();
  encode_words(text, offset, *workspace, ids);
  give_back(std::move(workspace));
}

void ByteBpe::encode_bytes(std::string_view text, std::size_t offset,
                           std::vector<std::int32_t>& ids) const {
  bool after_unknown = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::int32_t id = model_.byte_ids[static_cast<unsigned char>(text[at])];
    if (id >= 0) {
      ids.push_back(id);
    } else if (!model_.unknown) {
      fail(ErrorCode::invalid_argument, "text",
           "byte " + std::to_string(offset + at) +
               " is not in the vocabulary, which has no unknown token",
           {}, readable(text.substr(at, 1)));
    } else if (!after_unknown || !model_.fuse_unknown) {
      ids.push_back(*model_.unknown);
    }
    after_unknown = id < 0;
  }
}

void ByteBpe::encode_words(std::string_view text, std::size_t offset, Workspace& workspace,
                           std::vector<std::int32_t>& ids) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = gpt2_word_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    const std::span<const std::int32_t> known = workspace.cache.find(word);
    if (!known.empty()) {
      ids.insert(ids.end(), known.begin(), known.end());
    } else {
      workspace.word.clear();
      encode_bytes(word, offset + at, workspace.word);
      table_.apply(workspace.word);
      workspace.cache.add(word, workspace.word);
      ids.insert(ids.end(), workspace.word.begin(), workspace.word.end());
    }
    at = end;
  }
}

std::unique_ptr<ByteBpe::Workspace> ByteBpe::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<Workspace>();
}

void ByteBpe::give_back(std::unique_ptr<Workspace> workspace) const {
  // A word of a hostile text may have left a block of any size.
  constexpr std::size_t keep = 4096;
  if (workspace->word.capacity() > keep) workspace->word = {};
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workspace));
}

}  // namespace heddle::text
