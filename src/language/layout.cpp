#include "language/layout.h"
#include "language/language.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace heddle {

namespace {

// The bytes of the first character, and how wide it is.
struct Character {
  std::size_t bytes = 1, columns = 1;
};

struct CodeRange {
  std::uint32_t first, last;
};

// Wide and fullwidth in Unicode's East Asian Width: Chinese, Japanese and Korean scripts with their
// punctuation, and pictures.
constexpr CodeRange kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},  {0x3041, 0xA4CF},
                               {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
                               {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                               {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr CodeRange kWithoutWidth[] = {{0x300, 0x36F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}};

template <std::size_t N>
bool lies_in(const CodeRange (&ranges)[N], std::uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](const CodeRange& range) {
    return range.first <= code && code <= range.last;
  });
}

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0xC0 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (bytes == 1 || bytes > text.size()) return {};
  std::uint32_t code = byte(0) & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  return {bytes, lies_in(kWithoutWidth, code) ? 0U : lies_in(kWide, code) ? 2U : 1U};
}

// No line begins with one of these, nor ends with an opening one.
constexpr std::string_view kClosing[] = {"，", "。", "、", "：", "；", "！", "？", "）",
                                         "」", "』", "》", "”",  "’",  "…",  ")",  " "};
constexpr std::string_view kOpening[] = {"（", "「", "『", "《", "“", "‘"};

bool may_end_between(std::string_view before, std::string_view after) {
  return std::none_of(std::begin(kClosing), std::end(kClosing),
                      [&](std::string_view mark) { return after.starts_with(mark); }) &&
         std::none_of(std::begin(kOpening), std::end(kOpening),
                      [&](std::string_view mark) { return before.ends_with(mark); });
}

// Lines of one paragraph: pieces that stay whole are put one after another while they fit.
class Lines {
 public:
  Lines(std::size_t columns, std::size_t indent)
      : columns_(columns), between_("\n" + std::string(indent, ' ')) {}

  void add(std::string_view piece) {
    std::string_view visible = piece;
    while (visible.ends_with(' ')) visible.remove_suffix(1);
    if (!line_.empty() && columns_of(line_) + columns_of(visible) > columns_) end_line();
    line_ += piece;
  }

  std::string take() {
    end_line();
    return std::move(text_);
  }

 private:
  void end_line() {
    while (line_.ends_with(' ')) line_.pop_back();
    text_ += (text_.empty() ? "" : between_) + line_;
    line_.clear();
  }

  std::size_t columns_;
  std::string between_, text_, line_;
};

std::string wrapped_paragraph(std::string_view text, std::size_t columns, std::size_t indent) {
  Lines lines(columns, indent);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const bool breakable = text[at] == ' ' || character.columns == 2;
    at += character.bytes;
    if (!breakable || !may_end_between(text.substr(begin, at - begin), text.substr(at))) continue;
    lines.add(text.substr(begin, at - begin));
    begin = at;
  }
  lines.add(text.substr(begin));
  return lines.take();
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    columns += character.columns;
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string padded(std::string_view text, std::size_t columns) {
  std::string out(text);
  if (const std::size_t own = columns_of(text); own < columns) out.append(columns - own, ' ');
  return out;
}

std::string padded_left(std::string_view text, std::size_t columns) {
  const std::size_t own = columns_of(text);
  return std::string(own < columns ? columns - own : 0, ' ').append(text);
}

std::string sentences(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty()) return first + second;
  return tr("{} {}", first, second);
}

std::string_view cut_to(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Character character = first_character(text.substr(bytes));
    if (used + character.columns > columns) break;
    used += character.columns;
    bytes += character.bytes;
  }
  return text.substr(0, bytes);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string all;
  for (bool first = true;; first = false) {
    const std::size_t end = text.find('\n');
    if (!first) all += "\n" + std::string(indent, ' ');
    all += wrapped_paragraph(text.substr(0, end), columns, indent);
    if (end == std::string_view::npos) return all;
    text.remove_prefix(end + 1);
  }
}

}  // namespace heddle
