#include "generate/decode/prompt.h"

#include <string>

#include "heddle/error.h"

namespace heddle::generate {

std::vector<std::int32_t> prompt_tokens(const data::Codec& codec, std::string_view text,
                                        std::string_view where) {
  std::vector<std::int32_t> tokens;
  try {
    tokens = codec.encode_source(text);
  } catch (const Error& e) {
    fail(e.code(), where, e.problem(), e.expected(), e.got());
  }
  if (!tokens.empty()) return tokens;
  const text::Tokenizer& t = codec.source();
  const auto first = t.begin() ? t.begin() : t.end();
  if (!first)
    fail(ErrorCode::invalid_argument, where, "the prompt is empty",
         "a text: the tokenizer has no token that texts begin with");
  return {*first};
}

Error with_prompt_numbered(const Error& e, std::size_t i) {
  const bool input = e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::out_of_range;
  if (!input || e.problem().starts_with("option ")) return e;
  return {e.code(), "prompt " + std::to_string(i + 1), e.problem(), e.expected(), e.got()};
}

}  // namespace heddle::generate
