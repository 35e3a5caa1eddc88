// Recipes that are based on others: with `base = "char-gpt"` above its first table, a recipe says
// only what is different. Tables are merged key by key and the recipe's own keys win; `without =
// ["model.attention.look_back"]` leaves keys or tables of the base out. A base may have a base.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/toml/toml.h"
#include "recipe/unedited.h"

namespace heddle::recipe {

// The recipe in the file with all that its bases say; it names no base any more. Every key has the
// place where it stands. Error for a base that is not there, for bases that come back to themselves
// or are too many, and for files that read_unedited() refuses.
io::TomlDocument read_with_bases(const std::string& path, const KeptText& kept = {});

// What the two keys above the first table say; nothing where they are not there.
std::optional<std::string> base_of(const io::TomlTable& root);
std::vector<std::string> keys_left_out(const io::TomlTable& root);

// The file that `base = name` means in a recipe at `path`: from its folder, the directory of a run
// there, or a recipe that ships. Errors name `where`.
std::string find_base(const std::string& path, const std::string& name, const std::string& where);

}  // namespace heddle::recipe
