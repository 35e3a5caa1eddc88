// Text files, plain or gzip: UTF-8 or an Error that names the line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::io {

inline constexpr std::size_t kMaxText = std::size_t{4} << 30;

// The whole text as it is, except that a byte order mark at its start is dropped: editors put it
// there, no writer meant it.
std::string read_text(const std::string& path, std::size_t max_bytes = kMaxText);

// A text and where its lines are. A line ends with LF or CRLF, which are not part of it; the last
// one may lack its end. A CR elsewhere is a character like others.
class TextLines {
 public:
  static TextLines read(const std::string& path, std::size_t max_bytes = kMaxText);
  TextLines(std::string text, std::string where);  // throws Error unless UTF-8

  std::size_t size() const noexcept { return starts_.size() - 1; }
  bool empty() const noexcept { return size() == 0; }
  std::string_view operator[](std::size_t i) const noexcept;
  std::string where(std::size_t i) const;  // "pairs.tsv:3", for errors about line i

 private:
  std::string text_, where_;
  std::vector<std::size_t> starts_;  // of each line, and one past the last
};

}  // namespace heddle::io
