#include "generate/decode/prompt.h"

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

}  // namespace heddle::generate
