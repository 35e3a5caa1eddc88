// Code points of UTF-8 text and what kind they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::text {

// The classes used by the rules that cut text into words: \p{L}, \p{N}, \s, other; Unicode 16.
enum class CharClass : std::uint8_t { letter, number, space, other };

// A byte that belongs to no well-formed sequence is a code point of its own, with the value
// kNotUtf8; its class is `other`.
inline constexpr std::int32_t kNotUtf8 = -1;

struct CodePoint {
  std::int32_t value = kNotUtf8;
  std::size_t bytes = 1;
};

// The code point that starts at `at`, which must be inside of the text.
CodePoint code_point_at(std::string_view text, std::size_t at) noexcept;

// The UTF-8 sequence of a code point.
std::string to_utf8(std::int32_t code_point);

CharClass char_class(std::int32_t code_point) noexcept;

// The property White_Space.
bool is_white_space(std::int32_t code_point) noexcept;

// Letters by case, as o200k's pattern tells them apart: uncased are \p{Lm}, \p{Lo} and \p{M}.
enum class LetterCase : std::uint8_t { none, upper, lower, uncased };
LetterCase letter_case(std::int32_t code_point) noexcept;

bool is_mark(std::int32_t code_point) noexcept;             // \p{M}
bool is_nonspacing_mark(std::int32_t code_point) noexcept;  // \p{Mn}
bool is_control(std::int32_t code_point) noexcept;          // \p{Cc}, \p{Cf}, \p{Co}
// \p{P}, and the symbols of ASCII ($ + < = > ^ ` | ~).
bool is_punctuation(std::int32_t code_point) noexcept;
// \w: letters, marks, decimal and letter numbers, connectors such as "_".
bool is_word_character(std::int32_t code_point) noexcept;

// Appends the code point's small letters: one for all but U+0130.
void append_lower(std::string& out, std::int32_t code_point);

// The bytes for the eyes: spaces as "␣", control characters as \n or \x1B, what is not UTF-8 as
// \xE2.
std::string readable(std::string_view bytes);

}  // namespace heddle::text
