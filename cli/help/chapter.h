// A chapter of the documentation as a terminal shows it: Markdown in, lines of at most `columns`
// out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::cli {

// It knows what chapters of docs/ consist of: headings, paragraphs, lists, tables, code, **bold**,
// *italic*, `names` and links. Text is wrapped, tables share the width among their columns, code
// stays as it is. A link to another chapter becomes the command that shows it.
std::string chapter_text(std::string_view markdown, std::size_t columns);

}  // namespace heddle::cli
