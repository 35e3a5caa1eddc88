// Functions that every template has: raise_exception, strftime_now, range, namespace.
#pragma once

#include <string_view>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

// The function of that name, or an undefined value.
Value global_function(std::string_view name);
Value call_function(Run& run, std::string_view name, const Arguments& arguments);

}  // namespace heddle::text::chat
