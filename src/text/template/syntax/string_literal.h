// Escapes in the strings of a template.
#pragma once

#include <string>
#include <string_view>

namespace heddle::text::chat {

// The text between the quotes with Python's escapes resolved: \n, \x41, \u00e9 and so on. A
// backslash before anything else stays. `place` is for errors.
std::string resolve_escapes(std::string_view inside, const std::string& place);

}  // namespace heddle::text::chat
