// Names of files with * (anything), ? (any character) and [a-z] in them, which do not match a "/".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::data {

bool is_pattern(std::string_view name);

// The files that a pattern matches, in the order of their names' bytes: the same on every machine.
// None for a name without such signs, or where a file has the name as it is.
std::vector<std::string> files_matching(const std::string& pattern);

}  // namespace heddle::data
