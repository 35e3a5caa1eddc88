// From the text of a template to its tree. Constructs outside of the subset are refused by name.
#pragma once

#include <string>
#include <string_view>

#include "text/template/limits.h"
#include "text/template/syntax/syntax.h"
#include "text/template/syntax/token_stream.h"

namespace heddle::text::chat {

Body parse_template(std::string_view source, const std::string& where, const Limits& limits);

// An expression; with `commas`, "a, b" is a tuple.
ExpressionPtr parse_expression(TokenStream& tokens, bool commas = false);
// The list of a for: no "x if y" at its outermost level, because an `if` is the loop's there.
ExpressionPtr parse_iterated(TokenStream& tokens);
// name(arguments) | name ... as they follow the word `filter`, or `set x |`.
ExpressionPtr parse_filters(TokenStream& tokens);

}  // namespace heddle::text::chat
