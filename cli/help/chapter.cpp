#include "help/chapter.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "help/help_topics.h"
#include "language/layout.h"

namespace heddle::cli {

namespace {

using Row = std::vector<std::string>;  // of a table

constexpr std::size_t kBetweenColumns = 2, kTableIndent = 2;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool is_topic(std::string_view name) {
  return std::ranges::any_of(help_topics(), [&](const HelpTopic& t) { return t.name == name; });
}

// "[data.md](data.md)" -> "heddle help data"; "[plan](recipes.md)" and other links: what they say.
std::string link_text(std::string_view text, std::string_view target) {
  constexpr std::string_view kEnd = ".md";
  if (text != target || !target.ends_with(kEnd)) return std::string(text);
  const std::string_view name = target.substr(0, target.size() - kEnd.size());
  return is_topic(name) ? "heddle help " + std::string(name) : std::string(text);
}

// Words without their marks. What stands in `backticks` is a name, and stays as it is.
std::string plain(std::string_view text) {
  std::string out;
  bool in_code = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    const std::size_t middle = rest.find("]("), end = rest.find(')');
    if (rest[0] == '`') in_code = !in_code;
    if (rest.starts_with("\\|")) continue;  // of a table's cell
    if (!in_code && rest[0] == '*') continue;
    if (!in_code && rest[0] == '[' && middle < rest.find(']', 1) + 1 && middle < end) {
      out += link_text(rest.substr(1, middle - 1), rest.substr(middle + 2, end - middle - 2));
      at += end;
      continue;
    }
    out += rest[0];
  }
  return out;
}

// A word that no line holds (a document of JSON) may end a line behind a comma or a bracket.
std::string with_breaks(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t line = 0;  // columns since the last place where a line may end
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (c == ' ' || c == '\n') line = 0;
    const bool long_word = line + columns_of(std::string_view(text).substr(at, end - at)) > columns;
    out += c;
    if (c != ' ' && c != '\n') ++line;
    if (long_word && (c == ',' || c == '{' || c == '[') && line > columns / 2) {
      out += '\n';
      line = 0;
    }
  }
  return out;
}

std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t indent) {
  return wrapped(with_breaks(plain(text), columns - indent), columns - indent, indent);
}

Row cells_of(std::string_view line) {
  Row cells;
  line.remove_prefix(1);
  std::string cell;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '|' || (i > 0 && line[i - 1] == '\\')) {
      cell += line[i];
      continue;
    }
    const std::size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : plain(cell.substr(first, last - first + 1)));
    cell.clear();
  }
  return cells;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  const std::string words = wrapped(text, 1, 0);  // one on a line
  for (const std::string_view line : lines_of(words)) longest = std::max(longest, columns_of(line));
  return longest;
}

// Columns as wide as their longest cell where all fit. Otherwise each begins with its longest word,
// and the narrowest that could use more is given more until nothing is left.
std::vector<std::size_t> widths_of(const std::vector<Row>& rows, std::size_t columns) {
  std::size_t count = 0;
  for (const Row& row : rows) count = std::max(count, row.size());
  std::vector<std::size_t> widest(count), least(count);
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widest[i] = std::max(widest[i], columns_of(row[i]));
      least[i] = std::max(least[i], longest_word(row[i]));
    }
  const std::size_t room = columns - kTableIndent - kBetweenColumns * (count - 1);
  for (std::size_t used = std::accumulate(least.begin(), least.end(), std::size_t{0}); used < room;
       ++used) {
    std::size_t narrowest = count;
    for (std::size_t i = 0; i < count; ++i)
      if (least[i] < widest[i] && (narrowest == count || least[i] < least[narrowest]))
        narrowest = i;
    if (narrowest == count) break;
    ++least[narrowest];
  }
  return least;
}

std::string row_text(const Row& row, const std::vector<std::size_t>& widths) {
  std::vector<std::string> cells(row.size());
  std::vector<std::vector<std::string_view>> lines(row.size());
  std::size_t height = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells[i] = wrapped(row[i], widths[i], 0);
    lines[i] = lines_of(cells[i]);
    height = std::max(height, lines[i].size());
  }
  std::string text;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line(kTableIndent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i)
      line += padded(l < lines[i].size() ? lines[i][l] : "", widths[i] + kBetweenColumns);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// The second row of Markdown's tables is a line; an empty head is none.
std::string table_text(const std::vector<std::string_view>& lines, std::size_t columns) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != 1) rows.push_back(cells_of(lines[i]));
  const auto widths = widths_of(rows, columns);
  std::string text;
  const bool has_head = std::ranges::any_of(rows[0], [](const auto& c) { return !c.empty(); });
  for (std::size_t i = has_head ? 0 : 1; i < rows.size(); ++i) {
    text += row_text(rows[i], widths);
    if (i > 0) continue;
    Row rule;
    for (const std::size_t width : widths) rule.emplace_back(width, '-');
    text += row_text(rule, widths);
  }
  return text;
}

std::string heading_text(std::string_view line) {
  const std::size_t level = line.find_first_not_of('#');
  const std::string text = plain(line.substr(level + 1));
  return text + "\n" + std::string(columns_of(text), level == 1 ? '=' : '-') + "\n";
}

// Consecutive lines of Markdown that belong together.
enum class Kind { blank, heading, table, item, code, text };

Kind kind_of(std::string_view line) {
  if (line.empty()) return Kind::blank;
  if (line.starts_with("#")) return Kind::heading;
  if (line.starts_with("|")) return Kind::table;
  if (line.starts_with("- ")) return Kind::item;
  return line.starts_with("    ") ? Kind::code : Kind::text;
}

std::string joined(const std::vector<std::string_view>& lines) {
  std::string text;
  for (const std::string_view line : lines) text.append(text.empty() ? "" : " ").append(line);
  return text;
}

// The last space outside of quotes before which the text fits, of a command one before an option;
// 0 where there is none.
std::size_t last_break(std::string_view text, std::size_t columns, bool command) {
  std::size_t space = 0, option = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (text[at] != ' ' || quoted) continue;
    if (columns_of(text.substr(0, at)) > columns) break;
    space = at;
    if (text.substr(at).starts_with(" --")) option = at;
  }
  return command && option > 0 ? option : space;
}

std::string_view comment_mark(std::string_view words) {
  for (const std::string_view mark : {"# ", "// "})
    if (words.starts_with(mark)) return mark;
  return "";
}

// The words that explain a line, in the column where they begin; a comment is one in every line.
std::string explained(std::string_view before, std::string_view words, std::size_t columns) {
  const std::string_view mark = comment_mark(words);
  const std::size_t column = columns_of(before);
  const std::string lines = wrapped(words.substr(mark.size()), columns - column - mark.size(), 0);
  std::string text(before);
  for (const std::string_view line : lines_of(lines)) {
    if (text.ends_with('\n')) text.append(column, ' ');
    text.append(mark).append(line).append("\n");
  }
  return text;
}

// A line of code that the terminal would tear apart. A command goes on behind a backslash, so that
// it can still be copied; anything else that is not explained goes on further in.
std::string code_line(std::string_view line, std::size_t columns) {
  constexpr std::size_t kFurtherIn = 4, kLeastExplained = 24;
  if (columns_of(line) <= columns) return std::string(line) + "\n";
  const std::size_t begin = line.find_first_not_of(' ');
  const std::size_t words = line.find_first_not_of(' ', line.find("  ", begin));
  if (words != std::string_view::npos &&
      columns_of(line.substr(0, words)) + kLeastExplained <= columns)
    return explained(line.substr(0, words), line.substr(words), columns);
  if (words != std::string_view::npos && !comment_mark(line.substr(words)).empty())  // goes above
    return explained(line.substr(0, begin), line.substr(words), columns) +
           code_line(line.substr(0, line.find_last_not_of(' ', words - 1) + 1), columns);
  std::string text(line.substr(0, begin));
  line.remove_prefix(begin);
  const bool command =
      line.starts_with("heddle ") || line.starts_with("python3 ") || line.starts_with("--");
  const std::string_view end = command ? " \\" : "";
  for (std::size_t indent = begin; columns_of(line) > columns - indent;
       indent = begin + kFurtherIn) {
    const std::size_t at = last_break(line, columns - indent - end.size(), command);
    if (at == 0) break;
    text.append(line.substr(0, at)).append(end).append("\n");
    text.append(begin + kFurtherIn, ' ');
    line.remove_prefix(at + 1);
  }
  return text.append(line).append("\n");
}

// The block that begins at `at`, which is moved behind it.
std::string block_text(const std::vector<std::string_view>& lines, std::size_t& at,
                       std::size_t columns) {
  const std::string_view first = lines[at];
  std::vector<std::string_view> block;
  if (first.starts_with("```")) {
    std::string code;
    for (++at; at < lines.size() && !lines[at].starts_with("```"); ++at)
      code += lines[at].empty() ? "\n" : code_line("    " + std::string(lines[at]), columns);
    ++at;
    return code;
  }
  const Kind kind = kind_of(first);
  do {
    block.push_back(lines[at++]);
  } while (at < lines.size() && kind != Kind::heading && !lines[at].starts_with("```") &&
           kind_of(lines[at]) == (kind == Kind::item ? Kind::text : kind));
  switch (kind) {
    case Kind::heading: return heading_text(first);
    case Kind::table: return table_text(block, columns);
    case Kind::item: return "- " + wrapped_text(joined(block).substr(2), columns, 2) + "\n";
    case Kind::code: {
      std::string code;
      for (const std::string_view line : block) code += code_line(line, columns);
      return code;
    }
    default: return wrapped_text(joined(block), columns, 0) + "\n";
  }
}

}  // namespace

std::string chapter_text(std::string_view markdown, std::size_t columns) {
  const auto lines = lines_of(markdown);
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    if (lines[at].empty()) {
      text += "\n";
      ++at;
    } else {
      text += block_text(lines, at, columns);
    }
  }
  return text;
}

}  // namespace heddle::cli
