// Values as text: as Python's str() and repr() have them, and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

// 1.0, 0.1, 1e+16, inf, as Python prints them.
std::string real_text(double value);

// The text of {{ value }}. Values that have no text of their own (macros, namespaces) are refused.
MarkedText to_text(Run& run, const Value& value);

struct JsonStyle {
  bool ascii = false;  // \u00e9 instead of é
  bool sorted = false;
  bool lines = false;  // a line for each item, with `indent` for each level
  MarkedText indent = {};
  MarkedText item_separator = {}, key_separator = {};
};

MarkedText to_json(Run& run, const Value& value, const JsonStyle& style);

}  // namespace heddle::text::chat
