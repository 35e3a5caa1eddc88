#include "text/bpe/byte_bpe.h"

#include <utility>

#include "text/json/json_write.h"
#include "text/split/word_end.h"

namespace heddle::text {

namespace {

bool are_byte_values(const std::array<std::int32_t, 256>& ids) {
  for (std::size_t byte = 0; byte < ids.size(); ++byte)
    if (ids[byte] != static_cast<std::int32_t>(byte)) return false;
  return true;
}

}  // namespace

ByteBpe::ByteBpe(std::vector<Piece> pieces, std::vector<AddedToken> added, BpeModel parts)
    : Tokenizer(std::move(pieces), std::move(added), ""),
      model_(std::move(parts)),
      words_(model_),
      is_bytes_(model_.parts().merges.empty() && are_byte_values(model_.parts().byte_ids)) {
  if (model_.parts().unknown) set_unknown(*model_.parts().unknown);
}

ByteBpe::~ByteBpe() = default;

std::string ByteBpe::to_json() const { return bpe_json(pieces(), added(), model_.parts()); }

// A piece that begins with a space gets none in front.
Cuts ByteBpe::plain_cuts() const {
  if (model_.parts().prefix_space) return Cuts::spaces;
  return is_bytes_ ? Cuts::characters : Cuts::white_space;
}

void ByteBpe::encode_plain(std::string_view text, std::size_t offset,
                           std::vector<std::int32_t>& ids) const {
  std::string prefixed;
  if (model_.parts().prefix_space && text[0] != ' ') {
    prefixed = " " + std::string(text);
    text = prefixed;
  }
  if (model_.parts().merges.empty() && !model_.parts().fuse_unknown) {
    ids.reserve(ids.size() + text.size());
    model_.encode_bytes(text, offset, ids);
    return;
  }
  const WordEncoder::Borrowed workspace = words_.workspace();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = gpt2_word_end(text, at);
    words_.encode(text.substr(at, end - at), offset + at, *workspace, ids);
    at = end;
  }
}

}  // namespace heddle::text
