// Text in lines of a terminal, where a Chinese character is as wide as two Latin ones.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

// How many columns the text takes. Bytes that are no UTF-8 take one each.
std::size_t columns_of(std::string_view text);

// Padded with spaces up to that width; unchanged if it is wider.
std::string padded(std::string_view text, std::size_t columns);

// The same with the spaces in front.
std::string padded_left(std::string_view text, std::size_t columns);

// Two sentences, one after another: with a space between them where the language has one. Either
// may be empty.
std::string sentences(const std::string& first, const std::string& second);

// As many whole characters from its start as fit.
std::string_view cut_to(std::string_view text, std::size_t columns);

// In lines of at most `columns`, all but the first indented. A line may end at a space and between
// Chinese characters, but begins with no closing mark and ends with no opening one. Words that are
// longer stay whole, and line ends of the text are kept.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

}  // namespace heddle
