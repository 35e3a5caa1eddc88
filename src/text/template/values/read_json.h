// JSON as values, with the keys in the order of the text.
#pragma once

#include <string>
#include <string_view>

#include "text/template/values/value.h"

namespace heddle::text::chat {

// With `from_user`, every string is marked as a user's, keys too. Integers must fit into 64 bits.
Value read_json(std::string_view json, const std::string& where, bool from_user);

}  // namespace heddle::text::chat
