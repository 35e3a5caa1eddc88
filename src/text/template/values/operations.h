// Operators of expressions, and what lists, maps and strings have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

// The items that a loop over it sees. `what` is for the error when it is no such value.
std::vector<Value> items_of(Run& run, const Value& value, std::string_view what);
Value length_of(Run& run, const Value& value);

// value.name: a method first, then a key. value[key]: a key first, then a method.
Value attribute_of(Run& run, const Value& value, std::string_view name);
Value item_of(Run& run, const Value& value, const Value& key);

// value[begin : end : step]; undefined stands for what is left out.
Value slice_of(Run& run, const Value& value, const Value& begin, const Value& end,
               const Value& step);

// Strings with a separator between them, and replaced(), with the size of the result checked first.
MarkedText joined(Run& run, const std::vector<Value>& strings, const MarkedText& separator);
MarkedText replace_text(Run& run, const MarkedText& text, const std::string& old,
                        const MarkedText& by, std::int64_t most);

// + - * / // %
Value arithmetic(Run& run, std::string_view op, const Value& a, const Value& b);
Value negated(Run& run, const Value& value, bool minus);
// == != < <= > >= in "not in"
bool compares(Run& run, std::string_view op, const Value& a, const Value& b);

}  // namespace heddle::text::chat
