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
                       class_of(is_number(value)), escaped(value));
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
      out +=
          fmt::format("<td{}>{}</td>", class_of(i < numbers.size() && numbers[i]), escaped(row[i]));
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
