// Text files as the data room sees them, and how their lines are refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "data/config.h"
#include "heddle/error.h"
#include "io/files/lines.h"

namespace heddle::data {

// Views into it live as long as it does.
using LinesPtr = std::shared_ptr<const io::TextLines>;

// A file of lines, plain or gzip, in UTF-8. Throws Error when there is none or when it is empty.
LinesPtr read_lines(const DataConfig& config, const std::string& path);

bool is_blank(std::string_view text);  // nothing but ASCII white space

// `line` counts from 0; people read it from 1.
[[noreturn]] void fail_at_line(const io::TextLines& lines, std::size_t line,
                               std::string_view problem, std::string_view expected = {},
                               std::string_view got = {});

// Calls `body`; its errors are rethrown with the line's place.
template <class Body>
auto at_line(const io::TextLines& lines, std::size_t line, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    fail_at_line(lines, line, e.problem(), e.expected(), e.got());
  }
}

}  // namespace heddle::data
