#include "text/template/library/strings.h"

#include <algorithm>

#include "text/unicode.h"

namespace heddle::text::chat {
namespace {

// Python's white space: the property White_Space and four separators of ASCII.
bool is_python_space(std::int32_t c) {
  return char_class(c) == CharClass::space || (c >= 0x1C && c <= 0x1F);
}

// The code point that ends at `at`.
CodePoint code_point_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  const CodePoint point = code_point_at(text, begin);
  return begin + point.bytes == at ? point : CodePoint{};
}

// How long the longest proper prefix of needle[0..i] is that is a suffix of it as well (Knuth,
// Morris, Pratt).
std::vector<std::size_t> borders(std::string_view needle) {
  std::vector<std::size_t> border(needle.size(), 0);
  for (std::size_t i = 1, k = 0; i < needle.size(); ++i) {
    while (k > 0 && needle[i] != needle[k]) k = border[k - 1];
    if (needle[i] == needle[k]) ++k;
    border[i] = k;
  }
  return border;
}

std::vector<MarkedText> split_at_spaces(const MarkedText& text, std::int64_t most) {
  std::vector<MarkedText> parts;
  const std::string& bytes = text.bytes();
  std::size_t at = space_end(bytes, 0);
  while (at < bytes.size()) {
    if (most >= 0 && parts.size() == static_cast<std::size_t>(most)) {
      parts.push_back(text.part(at, space_begin(bytes, bytes.size())));
      break;
    }
    std::size_t end = at;
    while (end < bytes.size()) {
      const CodePoint point = code_point_at(bytes, end);
      if (is_python_space(point.value)) break;
      end += point.bytes;
    }
    parts.push_back(text.part(at, end));
    at = space_end(bytes, end);
  }
  return parts;
}

bool ends_line(std::int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool contains(const std::string& characters, std::string_view one) {
  return characters.find(one) != std::string::npos;
}

}  // namespace

std::size_t space_end(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (!is_python_space(point.value)) break;
    at += point.bytes;
  }
  return at;
}

std::size_t space_begin(std::string_view text, std::size_t at) {
  while (at > 0) {
    const CodePoint point = code_point_before(text, at);
    if (!is_python_space(point.value)) break;
    at -= point.bytes;
  }
  return at;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).bytes) ++count;
  return count;
}

std::vector<std::size_t> code_point_places(std::string_view text) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  for (; at < text.size(); at += code_point_at(text, at).bytes) places.push_back(at);
  places.push_back(at);
  return places;
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  constexpr std::size_t short_needle = 8;  // its length bounds the repeated work
  if (needle.size() <= short_needle) return text.find(needle, from);
  const std::vector<std::size_t> border = borders(needle);
  std::size_t k = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    while (k > 0 && text[i] != needle[k]) k = border[k - 1];
    if (text[i] == needle[k]) ++k;
    if (k == needle.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

MarkedText stripped(const MarkedText& text, Side side, const std::string* characters) {
  const std::string& bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  if (!characters) {
    if (side != Side::right) begin = space_end(bytes, 0);
    if (side != Side::left && begin < end) end = space_begin(bytes, end);
    return text.part(begin, end);
  }
  const std::string_view view = bytes;
  while (side != Side::right && begin < end) {
    const std::size_t size = code_point_at(bytes, begin).bytes;
    if (!contains(*characters, view.substr(begin, size))) break;
    begin += size;
  }
  while (side != Side::left && begin < end) {
    const std::size_t size = code_point_before(bytes, end).bytes;
    if (!contains(*characters, view.substr(end - size, size))) break;
    end -= size;
  }
  return text.part(begin, end);
}

std::vector<MarkedText> split(const MarkedText& text, const std::string* separator,
                              std::int64_t most) {
  if (!separator) return split_at_spaces(text, most);
  std::vector<MarkedText> parts;
  std::size_t at = 0;
  while (most < 0 || parts.size() < static_cast<std::size_t>(most)) {
    const std::size_t found = find_text(text.bytes(), *separator, at);
    if (found == std::string::npos) break;
    parts.push_back(text.part(at, found));
    at = found + separator->size();
  }
  parts.push_back(text.part(at, text.size()));
  return parts;
}

std::vector<MarkedText> split_lines(const MarkedText& text) {
  std::vector<MarkedText> lines;
  const std::string& bytes = text.bytes();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = code_point_at(bytes, at);
    std::size_t next = at + point.bytes;
    if (ends_line(point.value)) {
      lines.push_back(text.part(begin, at));
      if (point.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

MarkedText replaced(const MarkedText& text, const std::string& old, const MarkedText& by,
                    std::int64_t most) {
  MarkedText result;
  std::size_t at = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    const std::size_t found = find_text(text.bytes(), old, at);
    if (found == std::string::npos) break;
    result.append(text, at, found);
    result.append(by);
    at = found + old.size();
    if (!old.empty()) continue;
    // An empty text is found before every character and at the end.
    if (at == text.size()) return result;
    const std::size_t next = at + code_point_at(text.bytes(), at).bytes;
    result.append(text, at, next);
    at = next;
  }
  result.append(text, at, text.size());
  return result;
}

std::size_t count_text(std::string_view text, std::string_view needle) {
  if (needle.empty()) return count_code_points(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = find_text(text, needle, at)) != std::string_view::npos;
       at += needle.size())
    ++count;
  return count;
}

MarkedText html_escaped(const MarkedText& text) {
  constexpr std::string_view special = "&<>'\"";
  MarkedText result;
  std::size_t at = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t which = special.find(text.bytes()[i]);
    if (which == std::string_view::npos) continue;
    constexpr const char* entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    result.append(text, at, i);
    result.append(entities[which], text.from_user(i, i + 1));
    at = i + 1;
  }
  result.append(text, at, text.size());
  return result;
}

}  // namespace heddle::text::chat
