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

// The code point that starts at `at`, which must be inside of the text. Tokenizers read each
// character with it, so it is inline; a sequence that is too long, cut off, a surrogate or beyond
// U+10FFFF is not well-formed.
inline CodePoint code_point_at(std::string_view text, std::size_t at) noexcept {
  const auto bits = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]) & 0x3F; };
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[at + i]) & 0xC0) == 0x80;
  };
  const int first = static_cast<unsigned char>(text[at]);
  const std::size_t left = text.size() - at;
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) {
    if (first < 0xC2 || left < 2 || !continues(1)) return {};
    return {((first & 0x1F) << 6) | bits(1), 2};
  }
  if (first < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return {};
    const std::int32_t value = ((first & 0x0F) << 12) | (bits(1) << 6) | bits(2);
    if (value < 0x800 || (value & 0xF800) == 0xD800) return {};
    return {value, 3};
  }
  if (first > 0xF4 || left < 4 || !continues(1) || !continues(2) || !continues(3)) return {};
  const std::int32_t value = ((first & 0x07) << 18) | (bits(1) << 12) | (bits(2) << 6) | bits(3);
  if (value < 0x10000 || value > 0x10FFFF) return {};
  return {value, 4};
}

// The UTF-8 sequence of a code point.
std::string to_utf8(std::int32_t code_point);

// Chinese characters and Korean syllables: whole ranges of \p{Lo}, which need no table.
constexpr bool is_han_or_hangul(std::int32_t code_point) noexcept {
  return (code_point >= 0x4E00 && code_point <= 0x9FFF) ||
         (code_point >= 0xAC00 && code_point <= 0xD7A3) ||
         (code_point >= 0x3400 && code_point <= 0x4DBF);
}

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
