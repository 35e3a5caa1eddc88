#include "text/bpe/byte_model.h"

#include <string>
#include <utility>

#include "heddle/error.h"
#include "text/unicode.h"

namespace heddle::text {

ByteModel::ByteModel(BpeModel parts) : parts_(std::move(parts)), table_(parts_.merges) {}

// `ids` is empty: merges work on all of it.
void ByteModel::encode(std::string_view word, std::size_t offset,
                       std::vector<std::int32_t>& ids) const {
  if (!parts_.whole_words.empty()) {
    if (const auto id = find_name(parts_.whole_words, word)) {
      ids.push_back(*id);
      return;
    }
  }
  encode_bytes(word, offset, ids);
  table_.apply(ids);
}

void ByteModel::encode_bytes(std::string_view text, std::size_t offset,
                             std::vector<std::int32_t>& ids) const {
  bool after_unknown = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::int32_t id = parts_.byte_ids[static_cast<unsigned char>(text[at])];
    if (id >= 0) {
      ids.push_back(id);
    } else if (!parts_.unknown) {
      fail(ErrorCode::invalid_argument, "text",
           "byte " + std::to_string(offset + at) +
               " is not in the vocabulary, which has no unknown token",
           {}, readable(text.substr(at, 1)));
    } else if (!after_unknown || !parts_.fuse_unknown) {
      ids.push_back(*parts_.unknown);
    }
    after_unknown = id < 0;
  }
}

}  // namespace heddle::text
