#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace heddle::text {

namespace {

struct Range {
  std::int32_t first, last;
  CharClass kind;
};

// Letters and numbers of Unicode 15.1 and 16.0, which utf8proc 2.8 (Unicode 15.0) does not know:
// the same text must have the same words here and in other tokenizers.
constexpr std::array kNewer = std::to_array<Range>({
    {0x1C89, 0x1C8A, CharClass::letter},   {0xA7CB, 0xA7CD, CharClass::letter},
    {0xA7DA, 0xA7DC, CharClass::letter},   {0x105C0, 0x105F3, CharClass::letter},
    {0x10D40, 0x10D49, CharClass::number}, {0x10D4A, 0x10D65, CharClass::letter},
    {0x10D6F, 0x10D85, CharClass::letter}, {0x10EC2, 0x10EC4, CharClass::letter},
    {0x11380, 0x11389, CharClass::letter}, {0x1138B, 0x1138B, CharClass::letter},
    {0x1138E, 0x1138E, CharClass::letter}, {0x11390, 0x113B5, CharClass::letter},
    {0x113B7, 0x113B7, CharClass::letter}, {0x113D1, 0x113D1, CharClass::letter},
    {0x113D3, 0x113D3, CharClass::letter}, {0x116D0, 0x116E3, CharClass::number},
    {0x11BC0, 0x11BE0, CharClass::letter}, {0x11BF0, 0x11BF9, CharClass::number},
    {0x13460, 0x143FA, CharClass::letter}, {0x16100, 0x1611D, CharClass::letter},
    {0x16130, 0x16139, CharClass::number}, {0x16D40, 0x16D6C, CharClass::letter},
    {0x16D70, 0x16D79, CharClass::number}, {0x18CFF, 0x18CFF, CharClass::letter},
    {0x1CCF0, 0x1CCF9, CharClass::number}, {0x1E5D0, 0x1E5ED, CharClass::letter},
    {0x1E5F0, 0x1E5F0, CharClass::letter}, {0x1E5F1, 0x1E5FA, CharClass::number},
    {0x2EBF0, 0x2EE5D, CharClass::letter},
});

CharClass newer_class(std::int32_t value) noexcept {
  const auto* const range =
      std::lower_bound(kNewer.begin(), kNewer.end(), value,
                       [](const Range& r, std::int32_t v) { return r.last < v; });
  return range != kNewer.end() && range->first <= value ? range->kind : CharClass::other;
}

void append_hex(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

bool is_invisible(std::int32_t code_point) noexcept {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         is_white_space(code_point);
}

}  // namespace

// The category of separators is another set: tabs are none.
bool is_white_space(std::int32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string to_utf8(std::int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t used = utf8proc_encode_char(code_point, bytes.data());
  return {bytes.begin(), bytes.begin() + used};
}

CharClass char_class(std::int32_t code_point) noexcept {
  if (code_point < 0) return CharClass::other;
  if (is_han_or_hangul(code_point)) return CharClass::letter;
  if (is_white_space(code_point)) return CharClass::space;
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharClass::number;
    case UTF8PROC_CATEGORY_CN: return newer_class(code_point);
    default: return CharClass::other;
  }
}

LetterCase letter_case(std::int32_t code_point) noexcept {
  if (code_point < 0) return LetterCase::none;
  if (is_han_or_hangul(code_point)) return LetterCase::uncased;
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return LetterCase::upper;
    case UTF8PROC_CATEGORY_LL: return LetterCase::lower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return LetterCase::uncased;
    case UTF8PROC_CATEGORY_CN:
      return newer_class(code_point) == CharClass::letter ? LetterCase::uncased : LetterCase::none;
    default: return LetterCase::none;
  }
}

bool is_mark(std::int32_t code_point) noexcept {
  if (code_point < 0) return false;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(std::int32_t code_point) noexcept {
  return code_point >= 0 && utf8proc_category(code_point) == UTF8PROC_CATEGORY_MN;
}

bool is_control(std::int32_t code_point) noexcept {
  if (code_point < 0) return false;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(std::int32_t code_point) noexcept {
  if (code_point < 0) return false;
  if (code_point < 0x80)
    return (code_point > ' ' && code_point < '0') || (code_point > '9' && code_point < 'A') ||
           (code_point > 'Z' && code_point < 'a') || (code_point > 'z' && code_point < 0x7F);
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_word_character(std::int32_t code_point) noexcept {
  if (code_point < 0) return false;
  // Alphabetic symbols (letters in circles and squares), and what joins letters.
  const auto within = [&](std::int32_t first, std::int32_t last) {
    return code_point >= first && code_point <= last;
  };
  if (within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) ||
      within(0x1F170, 0x1F189) || within(0x200C, 0x200D))
    return true;
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_CN: return newer_class(code_point) != CharClass::other;
    default: return letter_case(code_point) != LetterCase::none;
  }
}

void append_lower(std::string& out, std::int32_t code_point) {
  constexpr std::int32_t capital_i_with_dot = 0x130;
  if (code_point == capital_i_with_dot) {
    out += "i\u0307";
  } else {
    out += to_utf8(utf8proc_tolower(code_point));
  }
}

std::string readable(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    const std::string_view sequence = bytes.substr(at, c.bytes);
    if (c.value == ' ') {
      out += "␣";
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (c.value < 0 || is_invisible(c.value)) {
      for (const char byte : sequence) append_hex(out, static_cast<unsigned char>(byte));
    } else {
      out += sequence;
    }
    at += c.bytes;
  }
  return out;
}

}  // namespace heddle::text
