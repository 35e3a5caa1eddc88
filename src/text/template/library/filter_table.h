// The filters by name, in two files: those that are about one value, and those about lists.
#pragma once

#include <string_view>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

using Filter = Value (*)(Run&, const Value&, const Arguments&);

// Null when there is none of that name.
Filter value_filter(std::string_view name);
Filter list_filter(std::string_view name);

// The value as a string: itself if it is one.
Value as_string(Run& run, const Value& value);

}  // namespace heddle::text::chat
