#include "generate/tasks/texts.h"

#include <algorithm>

#include "generate/decode/context.h"
#include "heddle/tagger.h"

namespace heddle {

namespace {
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";
}  // namespace

Words words_of(std::string_view sentence) {
  Words words;
  for (std::size_t at = sentence.find_first_not_of(kWhiteSpace); at != std::string_view::npos;) {
    const std::size_t end = std::min(sentence.find_first_of(kWhiteSpace, at), sentence.size());
    words.push_back(sentence.substr(at, end - at));
    at = sentence.find_first_not_of(kWhiteSpace, end);
  }
  return words;
}

namespace generate {

std::vector<std::size_t> EncodedTexts::lengths() const {
  std::vector<std::size_t> all;
  all.reserve(tokens.size());
  for (const auto& t : tokens) all.push_back(t.size());
  return all;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

void check_length(const model::Model& model, std::size_t tokens, std::size_t line,
                  std::string_view where) {
  const auto limit = position_limit(model.config());
  if (limit && static_cast<std::int64_t>(tokens) > *limit)
    fail(ErrorCode::out_of_range, std::string(where) + ": line " + std::to_string(line + 1),
         "tokens", "at most " + std::to_string(*limit) + ", the positions the model has learned",
         std::to_string(tokens));
}

EncodedTexts encode_texts(const model::Model& model, const data::Codec& codec,
                          std::span<const std::string_view> texts, std::string_view where) {
  EncodedTexts all;
  all.tokens.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (is_blank(texts[i])) continue;
    all.tokens[i] = at_line(where, i, [&] { return codec.encode_source(texts[i]); });
    check_length(model, all.tokens[i].size(), i, where);
  }
  return all;
}

}  // namespace generate

}  // namespace heddle
