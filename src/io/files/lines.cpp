#include "io/files/lines.h"

#include <algorithm>
#include <utility>

#include "io/errors.h"
#include "io/files/gzip.h"
#include "io/files/memory_limit.h"
#include "io/utf8.h"

namespace heddle::io {
namespace {

// Memory of a line besides its text, here and as an example of a data set: places, lengths,
// labels.
constexpr std::size_t kPerLine = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string checked(std::string text, const std::string& where) {
  const std::size_t bad = first_invalid_utf8(text);
  if (bad != std::string_view::npos) {
    const LineColumn place = line_column(text, bad);
    fail_io(where + ":" + std::to_string(place.line),
            "a byte that is not UTF-8, at column " + std::to_string(place.column) + ", offset " +
                std::to_string(bad),
            "UTF-8: save the file again with that encoding (iconv -f latin1 -t utf-8)",
            shown(std::string_view(text).substr(bad, 4)));
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace

std::string read_text(const std::string& path, std::size_t max_bytes) {
  return checked(read_maybe_gzip(path, max_bytes), path);
}

TextLines TextLines::read(const std::string& path, std::size_t max_bytes) {
  return {read_maybe_gzip(path, max_bytes), path};
}

TextLines::TextLines(std::string text, std::string where)
    : text_(checked(std::move(text), where)), where_(std::move(where)) {
  const auto ends = static_cast<std::size_t>(std::ranges::count(text_, '\n'));
  if (const std::size_t most = item_limit(kPerLine); ends >= most)
    fail_io(where_, "has too many lines for the memory that this process may use",
            "at most " + std::to_string(most), std::to_string(ends));
  starts_.reserve(ends + 2);
  std::size_t at = 0;
  while (at < text_.size()) {
    starts_.push_back(at);
    const std::size_t newline = text_.find('\n', at);
    at = newline == std::string::npos ? text_.size() : newline + 1;
  }
  starts_.push_back(text_.size());
}

std::string_view TextLines::operator[](std::size_t i) const noexcept {
  std::string_view line(text_.data() + starts_[i], starts_[i + 1] - starts_[i]);
  if (line.ends_with('\n')) {
    line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return line;
}

std::string TextLines::where(std::size_t i) const { return where_ + ":" + std::to_string(i + 1); }

}  // namespace heddle::io
