#include "text/template/syntax/string_literal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "heddle/error.h"
#include "text/unicode.h"

namespace heddle::text::chat {
namespace {

// A code point as `count` digits at `at`, or an Error.
std::int32_t coded(std::string_view text, std::size_t at, std::size_t count, int base,
                   const std::string& place) {
  const std::string_view digits = text.substr(std::min(at, text.size()), count);
  std::int32_t value = -1;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (!whole || digits.size() != count || value < 0 || value > 0x10FFFF || surrogate)
    fail(ErrorCode::io, place, "an escape in a string", "digits of a code point",
         "'" + std::string(digits) + "'");
  return value;
}

constexpr std::string_view kLetters = "\\'\"abfnrtv";
constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";

}  // namespace

std::string resolve_escapes(std::string_view inside, const std::string& place) {
  std::string result;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      result += inside[i];
      continue;
    }
    const char letter = inside[++i];
    if (const std::size_t known = kLetters.find(letter); known != std::string_view::npos) {
      result += kMeanings[known];
    } else if (letter == '\n') {  // the string goes on in the next line
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const std::size_t count = letter == 'x' ? 2 : (letter == 'u' ? 4 : 8);
      result += to_utf8(coded(inside, i + 1, count, 16, place));
      i += count;
    } else if (letter >= '0' && letter <= '7') {
      std::size_t count = 1;
      while (count < 3 && i + count < inside.size() && inside[i + count] >= '0' &&
             inside[i + count] <= '7')
        ++count;
      result += to_utf8(coded(inside, i, count, 8, place));
      i += count - 1;
    } else if (letter == 'N') {
      fail(ErrorCode::unsupported, place, "a character by its name (\\N{...}) in a string");
    } else {
      result += '\\';
      result += letter;
    }
  }
  return result;
}

}  // namespace heddle::text::chat
