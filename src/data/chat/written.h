// A conversation as the tokens that a model reads: its chat template, written out with the names of
// its special tokens, and encoded so that no text of a message becomes a special token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/named_template.h"
#include "text/template/chat_template.h"
#include "text/tokenizer.h"

namespace heddle::data {

// The one called "default", or the only one; with `tools` the one called "tool_use", where there is
// one. Error, in the name of `where`, where there is none of them.
const text::NamedTemplate& chosen_template(std::span<const text::NamedTemplate> templates,
                                           const std::string& where, bool tools = false);

// Variables of templates: names and values.
using Variables = std::vector<std::pair<text::chat::Value, text::chat::Value>>;

// bos_token, eos_token and others, as far as the tokenizer has them. These are the model's own, and
// become tokens.
Variables special_variables(const text::Tokenizer& tokenizer);

// A text, and the ranges of it that people wrote.
struct Written {
  std::string text;
  std::vector<text::TextRange> from_users;
};

Written written(const text::chat::Rendered& rendered);
std::vector<std::int32_t> encode(const text::Tokenizer& tokenizer, const Written& text);

}  // namespace heddle::data
