// Regular expressions by PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "text/split/pattern.h"

namespace heddle::text {

PatternPtr pcre_pattern(std::string_view pattern, std::string_view where);

// The pattern in PCRE2's words. Tokenizers write for Oniguruma, where \s and \w are Unicode's and
// \h is a hexadecimal digit. Refuses, by name, what has no translation: && in a class, \h.
std::string pcre_words(std::string_view pattern, std::string_view where);

}  // namespace heddle::text
