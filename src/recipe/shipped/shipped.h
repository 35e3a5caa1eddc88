// Recipes that ship: the files of recipes/, which the program carries inside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::recipe {

// The names of all, sorted.
std::vector<std::string> shipped_recipes();

// The place of the recipe of this name, "shipped:/char-gpt.toml": where a path of a file may stand,
// and what errors name. Nothing where none is called so.
std::optional<std::string> find_shipped(const std::string& name);

// The text at such a place; nothing for a path of a file.
std::optional<std::string_view> shipped_text(const std::string& place);

// The folder that paths of a recipe at `path` are looked for in; empty for one that ships, which
// has none.
std::string folder_of_recipe(const std::string& path);

// For errors about a name that none has: the one that may be meant, and all there are.
std::string nearest_shipped(const std::string& name);  // or empty
std::string list_of_shipped();                         // "char-gpt, llama-style, ..."

}  // namespace heddle::recipe
