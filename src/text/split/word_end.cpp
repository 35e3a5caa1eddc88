#include "text/split/word_end.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/unicode.h"

namespace heddle::text {

namespace {

constexpr std::uint8_t kNotAscii = 0xFF;
constexpr auto kAsciiSpace = static_cast<std::uint8_t>(CharClass::space);

// Classes of the ASCII characters, without asking Unicode's tables.
constexpr std::array<std::uint8_t, 256> make_ascii_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    CharClass kind = CharClass::other;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) kind = CharClass::letter;
    if (c >= '0' && c <= '9') kind = CharClass::number;
    if (c == ' ' || (c >= '\t' && c <= '\r')) kind = CharClass::space;
    classes[static_cast<std::size_t>(c)] = c < 0x80 ? static_cast<std::uint8_t>(kind) : kNotAscii;
  }
  return classes;
}

constexpr std::array<std::uint8_t, 256> kAsciiClasses = make_ascii_classes();

struct Character {
  CharClass kind;
  std::size_t bytes;
};

Character character_at(std::string_view text, std::size_t at) noexcept {
  const std::uint8_t ascii = kAsciiClasses[static_cast<std::uint8_t>(text[at])];
  if (ascii != kNotAscii) return {static_cast<CharClass>(ascii), 1};
  const CodePoint c = code_point_at(text, at);
  return {is_han_or_hangul(c.value) ? CharClass::letter : char_class(c.value), c.bytes};
}

// The end of the characters of one class that start at `at`.
std::size_t class_end(std::string_view text, std::size_t at, CharClass kind) noexcept {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

// Whether the character in front of `at` is white space. A character starts at every byte that is
// no continuation (10xxxxxx), so looking back for one finds what reading from the left would.
bool space_before(std::string_view text, std::size_t at) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(at, 4); ++back) {
    if ((static_cast<std::uint8_t>(text[at - back]) & 0xC0) == 0x80) continue;
    const Character c = character_at(text, at - back);
    return c.bytes == back && c.kind == CharClass::space;
  }
  return false;
}

// Bytes of the contraction behind the apostrophe at `at`, with it; 0 when there is none.
std::size_t contraction(std::string_view text, std::size_t at) noexcept {
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest.empty()) return 0;
  switch (rest[0]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    default: return rest == "re" || rest == "ve" || rest == "ll" ? 3 : 0;
  }
}

// White space in front of anything else leaves its last character to what follows, unless it has no
// other: a single space goes with the next word, and a single newline stays alone.
std::size_t white_space_end(std::string_view text, std::size_t at) noexcept {
  std::size_t last = at, end = at;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (c.kind != CharClass::space) break;
    last = end;
    end += c.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

bool is_line_end(char c) noexcept { return c == '\n' || c == '\r'; }

// Bytes of 's, 't, 're, 've, 'm, 'll, 'd in capital or small letters at `at`; 0 when there is none.
// The long s (U+017F) is an s too.
std::size_t contraction_any_case(std::string_view text, std::size_t at) noexcept {
  const std::string_view rest = text.substr(at, 3);
  if (rest.size() < 2 || rest[0] != '\'') return 0;
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  switch (lower(rest[1])) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    default: break;
  }
  if (rest == "'\u017F") return 3;
  if (rest.size() < 3) return 0;
  const char first = lower(rest[1]), second = lower(rest[2]);
  const bool known = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                     (first == 'l' && second == 'l');
  return known ? 3 : 0;
}

// \s*[\r\n]+|\s+(?!\S)|\s+: up to the last end of a line, or as white_space_end() has it.
std::size_t lines_end(std::string_view text, std::size_t at) noexcept {
  std::size_t last = at, end = at, line = at;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (c.kind != CharClass::space) break;
    last = end;
    end += c.bytes;
    if (is_line_end(text[last])) line = end;
  }
  if (line != at) return line;
  return end == text.size() || last == at ? end : last;
}

// Up to `most` numbers, the first of which ends at `at`.
std::size_t numbers_end(std::string_view text, std::size_t at, int most) noexcept {
  for (int count = 1; count < most && at < text.size(); ++count) {
    const Character c = character_at(text, at);
    if (c.kind != CharClass::number) break;
    at += c.bytes;
  }
  return at;
}

// Where neither letters nor numbers begin: ` ?[^\s\p{L}\p{N}]+` with the ends of lines (and
// slashes) behind it, or white space.
std::size_t other_word_end(std::string_view text, std::size_t at, const Character& first,
                           bool slashes) noexcept {
  std::size_t end = at;
  if (first.kind == CharClass::other) end = class_end(text, at + first.bytes, CharClass::other);
  if (text[at] == ' ') end = class_end(text, at + 1, CharClass::other);
  if (end == at || (text[at] == ' ' && end == at + 1)) return lines_end(text, at);
  while (end < text.size() && (is_line_end(text[end]) || (slashes && text[end] == '/'))) ++end;
  return end;
}

template <int numbers>
std::size_t line_word_end(std::string_view text, std::size_t at) noexcept {
  if (const std::size_t length = contraction_any_case(text, at)) return at + length;
  const Character first = character_at(text, at);
  const std::size_t next = at + first.bytes;
  if (first.kind == CharClass::letter) return class_end(text, next, CharClass::letter);
  if (first.kind == CharClass::number) return numbers_end(text, next, numbers);
  if (!is_line_end(text[at]) && next < text.size()) {
    const Character second = character_at(text, next);
    if (second.kind == CharClass::letter)
      return class_end(text, next + second.bytes, CharClass::letter);
  }
  return other_word_end(text, at, first, false);
}

struct CasedCharacter {
  LetterCase kind;
  std::size_t bytes;
};

CasedCharacter cased_at(std::string_view text, std::size_t at) noexcept {
  const char byte = text[at];
  if (byte >= 'a' && byte <= 'z') return {LetterCase::lower, 1};
  if (byte >= 'A' && byte <= 'Z') return {LetterCase::upper, 1};
  if (static_cast<unsigned char>(byte) < 0x80) return {LetterCase::none, 1};
  const CodePoint c = code_point_at(text, at);
  return {is_han_or_hangul(c.value) ? LetterCase::uncased : letter_case(c.value), c.bytes};
}

// Where U*W+ ends, and where U+W* does, from `at`; `at` when there is no match. U* takes all it can
// and gives back what W+ needs: its last character that is in both.
struct CasedEnds {
  std::size_t small = 0, capital = 0;
};

CasedEnds cased_ends(std::string_view text, std::size_t at) noexcept {
  std::size_t end = at, both = at;
  LetterCase kind = LetterCase::none;
  while (end < text.size()) {
    const CasedCharacter c = cased_at(text, end);
    kind = c.kind;
    if (kind != LetterCase::upper && kind != LetterCase::uncased) break;
    end += c.bytes;
    if (kind == LetterCase::uncased) both = end;
    kind = LetterCase::none;
  }
  if (kind != LetterCase::lower) return {both, end};
  const std::size_t capital = end;
  while (end < text.size()) {
    const CasedCharacter c = cased_at(text, end);
    if (c.kind != LetterCase::lower && c.kind != LetterCase::uncased) break;
    end += c.bytes;
  }
  return {end, capital == at ? at : end};
}

}  // namespace

std::size_t cl100k_word_end(std::string_view text, std::size_t at) noexcept {
  return line_word_end<3>(text, at);
}

std::size_t qwen2_word_end(std::string_view text, std::size_t at) noexcept {
  return line_word_end<1>(text, at);
}

std::size_t o200k_word_end(std::string_view text, std::size_t at) noexcept {
  const Character first = character_at(text, at);
  const std::size_t next = at + first.bytes;
  if (first.kind == CharClass::number) return numbers_end(text, next, 3);
  // A character in front of the letters belongs to them. A mark may be either.
  const bool is_prefix = first.kind != CharClass::letter && !is_line_end(text[at]);
  const CasedEnds behind = is_prefix ? cased_ends(text, next) : CasedEnds{next, next};
  std::size_t end = behind.small;
  if (end == next) {
    const CasedEnds here = cased_ends(text, at);
    end = here.small;
    if (end == at) end = behind.capital != next ? behind.capital : here.capital;
  }
  if (end == at) return other_word_end(text, at, first, true);
  return end + contraction_any_case(text, end);
}

std::size_t gpt2_word_end(std::string_view text, std::size_t at) noexcept {
  if (text[at] == '\'') {
    const std::size_t length = contraction(text, at);
    if (length != 0) return at + length;
  }
  if (text[at] == ' ' && at + 1 < text.size()) {
    const Character next = character_at(text, at + 1);
    if (next.kind != CharClass::space) return class_end(text, at + 1 + next.bytes, next.kind);
  }
  const Character first = character_at(text, at);
  if (first.kind == CharClass::space) return white_space_end(text, at);
  return class_end(text, at + first.bytes, first.kind);
}

Run space_run(std::string_view text, std::size_t at) noexcept {
  Run run{at, character_at(text, at).kind == CharClass::space};
  while (run.end < text.size()) {
    const Character c = character_at(text, run.end);
    if ((c.kind == CharClass::space) != run.is_space) break;
    run.end += c.bytes;
  }
  return run;
}

std::size_t safe_cut(std::string_view text, std::size_t at) noexcept {
  // White space of ASCII alone: its byte is never part of another character.
  for (at = std::max<std::size_t>(at, 1); at < text.size(); ++at)
    if (kAsciiClasses[static_cast<std::uint8_t>(text[at])] == kAsciiSpace &&
        !space_before(text, at))
      return at;
  return text.size();
}

}  // namespace heddle::text
