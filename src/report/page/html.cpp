#include "report/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "language/language.h"
#include "report/page/style.h"

namespace heddle::report {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "3e-3" in it: browsers end a line behind such a hyphen.
bool has_exponent(std::string_view word) {
  for (std::size_t i = 1; i + 2 < word.size(); ++i)
    if (word[i] == 'e' && is_digit(word[i - 1]) && (word[i + 1] == '-' || word[i + 1] == '+') &&
        is_digit(word[i + 2]))
      return true;
  return false;
}

std::string whole_word(std::string_view word) {
  if (!has_exponent(word)) return escaped(word);
  return "<span class=\"number\">" + escaped(word) + "</span>";
}

// Each word whole; between(word, rest) is what stands between it and the rest.
template <class Between>
std::string whole_words(std::string_view text, const Between& between) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    out += whole_word(word);
    text.remove_prefix(end);
    if (text.empty()) break;
    text.remove_prefix(1);
    out += between(word, text);
  }
  return out;
}

// A cell with numbers is not wrapped, but one with the name of a variant is.
std::string cell_text(std::string_view text) {
  return whole_words(text, [](std::string_view, std::string_view) { return " "; });
}

}  // namespace

std::string unbroken(std::string_view text) {
  return whole_words(text, [](std::string_view word, std::string_view rest) {
    return word.ends_with("±") || rest.starts_with("± ") ? "\u00a0" : " ";
  });
}

Html paragraph(std::string_view text) { return {"<p>" + escaped(text) + "</p>\n"}; }

Html preformatted(std::string_view text) { return {"<pre>" + escaped(text) + "</pre>\n"}; }

Html section(std::string_view title, const Html& body) {
  return {"<section>\n<h2>" + escaped(title) + "</h2>\n" + body.text + "</section>\n"};
}

Html heading(std::string_view title) { return {"<h3>" + escaped(title) + "</h3>\n"}; }

Html join(const std::vector<Html>& parts) {
  std::string all;
  for (const Html& part : parts) all += part.text;
  return {all};
}

namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                           ((cell[0] == '-' || cell[0] == '+') && cell.size() > 1));
}

constexpr std::size_t kManyColumns = 6;  // they stand closer together

// Titles stand above what they are titles of: a column with numbers is aligned to the right, with
// the words that stand among them.
bool has_numbers(const Table& table, std::size_t column) {
  return std::ranges::any_of(table.rows, [column](const std::vector<std::string>& row) {
    return column < row.size() && is_number(row[column]);
  });
}

const char* class_of(bool number) { return number ? " class=\"number\"" : ""; }

}  // namespace

Html facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts)
    out += fmt::format("<div><dt>{}</dt><dd{}>{}</dd></div>\n", escaped(name),
                       class_of(is_number(value)), cell_text(value));
  return {out + "</dl>\n"};
}

Html table(const Table& table) {
  const bool wide = table.columns.size() >= kManyColumns;
  std::string out =
      fmt::format("<div class=\"scroll\"><table{}>\n<thead><tr>", wide ? " class=\"wide\"" : "");
  std::vector<bool> numbers;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    numbers.push_back(has_numbers(table, i));
    out += fmt::format("<th{}>{}</th>", class_of(numbers[i]), escaped(table.columns[i]));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<td{}>{}</td>", class_of(i < numbers.size() && numbers[i]),
                         cell_text(row[i]));
    out += "</tr>\n";
  }
  return {out + "</tbody></table></div>\n"};
}

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::add(const Html& part) { body_ += part.text; }

void Page::add_script(std::string_view script) {
  script_ += "<script>\n" + std::string(script) + "</script>\n";
}

std::string Page::html() const {
  std::string out =
      "<!doctype html>\n<html lang=\"" + std::string(tag_of(language())) + "\">\n<head>\n";
  out += "<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<title>" + escaped(title_) + "</title>\n";
  out += "<style>\n" + std::string(kStyle) + style_ + "</style>\n</head>\n<body>\n<main>\n";
  out += "<header>\n<h1>" + escaped(title_) + "</h1>\n";
  if (!subtitle_.empty()) out += "<p class=\"subtitle\">" + escaped(subtitle_) + "</p>\n";
  out += "</header>\n" + body_ + "</main>\n<script>\n" + std::string(kScript);
  return out + "</script>\n" + script_ + "</body>\n</html>\n";
}

}  // namespace heddle::report
