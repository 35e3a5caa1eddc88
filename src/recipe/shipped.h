// Recipes that ship with the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heddle::recipe {

// The names of all, sorted. They are next to the installed program (../share/heddle/recipes) or the
// built one (recipes/ of the source tree), or in ./recipes.
std::vector<std::string> shipped_recipes();

// The file of the recipe of this name; nothing where none is called so.
std::optional<std::string> find_shipped(const std::string& name);

// For errors about a name that none has: the one that may be meant, and all there are.
std::string nearest_shipped(const std::string& name);  // or empty
std::string list_of_shipped();                         // "char-gpt, llama-style, ..."

}  // namespace heddle::recipe
