// Predicates, which follow `is`: x is defined, x is string. (Jinja calls them tests.)
#pragma once

#include <string_view>

#include "text/template/library/arguments.h"
#include "text/template/run.h"
#include "text/template/values/value.h"

namespace heddle::text::chat {

bool is_predicate(std::string_view name);
bool holds(Run& run, std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace heddle::text::chat
