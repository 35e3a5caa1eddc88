#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "language/language.h"
#include "report/style.h"

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

// A number and its unit stay on one line.
std::string opening(const char* tag, const std::string& content) {
  return fmt::format("<{}{}>", tag, is_number(content) ? " class=\"number\"" : "");
}

}  // namespace

Html facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts)
    out += fmt::format("<div><dt>{}</dt>{}{}</dd></div>\n", escaped(name), opening("dd", value),
                       escaped(value));
  return {out + "</dl>\n"};
}

Html table(const Table& table) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& c : table.columns) out += "<th>" + escaped(c) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row)
      out += fmt::format("{}{}</td>", opening("td", cell), escaped(cell));
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
