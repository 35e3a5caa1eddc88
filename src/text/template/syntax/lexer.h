// The text of a template as tokens, with the rules for white space applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/limits.h"

namespace heddle::text::chat {

enum class TokenKind : std::uint8_t {
  data,  // text outside of tags
  output_begin,
  output_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  symbol,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // of a string: without quotes, escapes resolved
  std::size_t line = 1;
};

std::vector<Token> tokenize(std::string_view source, const std::string& where,
                            const Limits& limits);

}  // namespace heddle::text::chat
