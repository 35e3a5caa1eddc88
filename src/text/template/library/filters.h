// Filters, which follow `|`: x | trim, x | tojson.
#pragma once

#include <string_view>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

bool is_filter(std::string_view name);
Value apply_filter(Run& run, std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace heddle::text::chat
