#include "text/split.h"

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
  return {char_class(c.value), c.bytes};
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

// Bytes of the contraction at the apostrophe at `at`, apostrophe included; 0 if there is none.
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

}  // namespace

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
