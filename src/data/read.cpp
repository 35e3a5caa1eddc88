#include "data/read.h"

namespace heddle::data {

LinesPtr read_lines(const DataConfig& config, const std::string& path) {
  const std::string found = resolve_path(config, path);
  auto lines = std::make_shared<const io::TextLines>(io::TextLines::read(found));
  if (lines->empty()) fail(ErrorCode::io, found, "is empty", "at least one line");
  return lines;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

void fail_at_line(const io::TextLines& lines, std::size_t line, std::string_view problem,
                  std::string_view expected, std::string_view got) {
  fail(ErrorCode::io, lines.where(line), problem, expected, got);
}

}  // namespace heddle::data
