// Files that are given as a recipe and are something else: a text to learn from, weights, an image.
#pragma once

#include <string>

namespace heddle::recipe {

// Throws an Error that says what the file is and what to do with it, if its first bytes show that
// it is not TOML. A file that might be TOML with a mistake is left to the parser.
void refuse_what_is_no_recipe(const std::string& path);

}  // namespace heddle::recipe
