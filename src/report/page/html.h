// Pages that people look at: one self-contained HTML file, readable in light and dark, no network.
//
//   Page page("Training char-gpt");
//   page.add(facts({{"parameters", "0.8 M"}}));
//   page.add(section("Loss", chart(loss)));
//   page.html()
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::report {

// Text as it must stand in HTML and in attributes.
std::string escaped(std::string_view text);

// The same for lines that are wrapped: numbers stay in one piece with their signs, intervals and
// exponents ("-0.2 ± 0.1", "learning_rate=3e-3").
std::string unbroken(std::string_view text);

// A piece of HTML that is complete by itself.
struct Html {
  std::string text;
};

Html paragraph(std::string_view text);
Html preformatted(std::string_view text);
Html section(std::string_view title, const Html& body);
Html heading(std::string_view title);  // within a section
Html join(const std::vector<Html>& parts);

// A row of figures with their names.
Html facts(const std::vector<std::pair<std::string, std::string>>& facts);

// Columns with cells that look like numbers are aligned to the right.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
Html table(const Table& table);

// In the language of the process (language/language.h), as its texts are.
class Page {
 public:
  explicit Page(std::string title, std::string subtitle = {});

  void add(const Html& part);
  void add_style(std::string_view css) { style_ += css; }  // behind the common one
  void add_script(std::string_view script);                // runs when all parts are there
  std::string html() const;

 private:
  std::string title_, subtitle_, body_, style_, script_;
};

}  // namespace heddle::report
