#include "text/bpe/byte_model.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "heddle/error.h"
#include "text/unicode.h"

namespace heddle::text {

ByteModel::ByteModel(BpeModel parts)
    : parts_(std::move(parts)), table_(parts_.merges), junctions_(parts_.merges.size()) {
  for (const auto& [word, id] : parts_.whole_words) whole_words_[word] = id;
  cuts_ = note_junctions();
}

// False where bytes have no token: then it is not known what stands for them. A merge of tokens
// that nothing makes never happens; such merges are what is left when no other can be followed.
bool ByteModel::note_junctions() {
  std::unordered_map<std::int32_t, std::string> bytes;
  for (std::size_t byte = 0; byte < parts_.byte_ids.size(); ++byte) {
    if (parts_.byte_ids[byte] < 0) return false;
    bytes[parts_.byte_ids[byte]] = std::string(1, static_cast<char>(byte));
  }
  std::vector<const Merge*> left;
  left.reserve(parts_.merges.size());
  for (const Merge& merge : parts_.merges) left.push_back(&merge);
  constexpr int most_rounds = 16;  // files list merges in the order in which they can happen
  std::size_t before = left.size() + 1;
  for (int round = 0; left.size() < before; ++round) {
    if (round == most_rounds) return false;
    before = left.size();
    std::erase_if(left, [&](const Merge* merge) {
      const auto first = bytes.find(merge->left), second = bytes.find(merge->right);
      if (first == bytes.end() || second == bytes.end()) return false;
      std::string result = first->second + second->second;
      junctions_.add(result);
      bytes.emplace(merge->result, std::move(result));
      return true;
    });
  }
  for (const auto& [word, id] : parts_.whole_words) junctions_.add(word);
  return true;
}

std::size_t ByteModel::part_end(std::string_view word, std::size_t at) const {
  return cuts_ ? junctions_.part_end(word, at) : word.size();
}

// `ids` is empty: merges work on all of it.
void ByteModel::encode(std::string_view word, std::size_t offset,
                       std::vector<std::int32_t>& ids) const {
  if (const std::int32_t* const id = whole_words_.find(word)) {
    ids.push_back(*id);
    return;
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
