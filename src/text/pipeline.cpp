#include "text/pipeline.h"

#include <utility>

namespace heddle::text {

Pipeline::Pipeline(std::vector<Piece> pieces, std::vector<AddedToken> added, PipelineParts parts)
    : Tokenizer(std::move(pieces), std::move(added), " "),
      parts_(std::move(parts)),
      word_end_(parts_.pre_tokenizer ? parts_.pre_tokenizer->word_end() : nullptr),
      words_(*parts_.model) {
  set_frame(std::move(parts_.frame));
  if (parts_.unknown) set_unknown(*parts_.unknown);
  if (parts_.normalizer)
    prepare_search(
        [&](std::string_view content) { return parts_.normalizer->normalize_name(content); });
}

Pipeline::~Pipeline() = default;

std::optional<std::string> Pipeline::normalized(std::string_view text) const {
  if (!parts_.normalizer) return std::nullopt;
  return parts_.normalizer->normalize(text);
}

void Pipeline::encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const {
  const WordEncoder::Borrowed workspace = words_.workspace();
  if (word_end_ != nullptr) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end_(text, at);
      words_.encode(text.substr(at, end - at), offset + at, *workspace, ids);
      at = end;
    }
    return;
  }
  if (!parts_.pre_tokenizer) {
    words_.encode(text, offset, *workspace, ids);
    return;
  }
  Words words{.list = {text}, .at_start = offset == 0, .kept = {}};
  parts_.pre_tokenizer->cut(words);
  for (const std::string_view word : words.list) words_.encode(word, offset, *workspace, ids);
}

// Patterns with code of their own are known; words of a model are independent of each other.
Cuts Pipeline::plain_cuts() const {
  return !parts_.normalizer && word_end_ != nullptr ? Cuts::spaces_and_lines : Cuts::nowhere;
}

std::string Pipeline::joined(std::span<const std::int32_t> ids) const {
  if (!parts_.decoder) return Tokenizer::joined(ids);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const std::string& name = pieces()[static_cast<std::size_t>(id)].name;
    if (!name.empty()) tokens.push_back(name);
  }
  parts_.decoder->decode(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

}  // namespace heddle::text
