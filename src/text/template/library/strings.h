// Python's operations on strings, on text with marks. Places are bytes, counts are code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/values/marked_text.h"

namespace heddle::text::chat {

// Where the white space (Python's) that begins at `at` ends, and where the one that ends there
// begins.
std::size_t space_end(std::string_view text, std::size_t at);
std::size_t space_begin(std::string_view text, std::size_t at);

std::size_t count_code_points(std::string_view text);
// Where each code point begins, and the end.
std::vector<std::size_t> code_point_places(std::string_view text);

// The first place of the needle at or after `from`, or npos; in time that grows with the length of
// the text only, however they look.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);

enum class Side : std::uint8_t { left, right, both };
// Without `characters`, white space is taken off.
MarkedText stripped(const MarkedText& text, Side side, const std::string* characters = nullptr);

// At most `most` cuts, all of them if negative; without a separator, at runs of white space.
std::vector<MarkedText> split(const MarkedText& text, const std::string* separator,
                              std::int64_t most);
std::vector<MarkedText> split_lines(const MarkedText& text);

// At most `most` replacements, all of them if negative.
MarkedText replaced(const MarkedText& text, const std::string& old, const MarkedText& by,
                    std::int64_t most);
std::size_t count_text(std::string_view text, std::string_view needle);

MarkedText upper(const MarkedText& text);
MarkedText lower(const MarkedText& text);
MarkedText capitalized(const MarkedText& text);

// & < > ' " as HTML has them.
MarkedText html_escaped(const MarkedText& text);

}  // namespace heddle::text::chat
