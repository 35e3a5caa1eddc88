// Methods of strings, lists and mappings: content.strip(), message.get('name').
#pragma once

#include <string_view>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

// Whether the type has a method of that name in Python, so that value.name is the method and no
// key. Methods that change a value are none: values do not change.
bool has_method(const Value& value, std::string_view name);

Value call_method(Run& run, const Method& method, const Arguments& arguments);

}  // namespace heddle::text::chat
