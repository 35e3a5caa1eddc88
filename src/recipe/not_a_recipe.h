// Files that are given as a recipe and are something else: a text to learn from, weights, an image.
#pragma once

#include <string>

namespace heddle::recipe {

// Throws Error that says what the file is and what to do with it, where its first bytes tell that
// it is no TOML. What might be TOML with a mistake in it is left to the parser.
void refuse_what_is_no_recipe(const std::string& path);

}  // namespace heddle::recipe
