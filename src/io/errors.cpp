#include "io/errors.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "heddle/error.h"
#include "io/utf8.h"

namespace heddle::io {

void fail_io(std::string_view where, std::string_view problem, std::string_view expected,
             std::string_view got) {
  fail(ErrorCode::io, where, problem, expected, got);
}

void fail_system(std::string_view path, std::string_view doing, int error) {
  fail_io(path, std::string(doing) + ": " + std::generic_category().message(error));
}

std::string shown(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < max_bytes) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_sequence(text.substr(at));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++at;
      continue;
    }
    if (byte == '"' || byte == '\\') out += '\\';
    out += text.substr(at, length);
    at += length;
  }
  return out + (at < text.size() ? "...\"" : "\"");
}

LineColumn line_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
  const std::size_t newline = before.rfind('\n');
  return {line, newline == std::string_view::npos ? before.size() + 1 : before.size() - newline};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kLongest = 256;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  // Rows of the table for i - 2, i - 1 and i letters of a.
  std::vector<std::size_t> two_back(b.size() + 1), one_back(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_back, one_back);
    std::swap(one_back, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = one_back[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({one_back[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_back[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace heddle::io
