// Recipes as they were written: a run seals its recipe.toml (io/files/checksums/seal.h), and an
// edit by hand is told from damage.
#pragma once

#include <functional>
#include <string>

#include "io/toml/toml.h"

namespace heddle::recipe {

// The copy, as TOML, that the run which wrote the recipe at `path` keeps elsewhere; empty: none. It
// shows which key was edited.
using KeptText = std::function<std::string(const std::string& path)>;

// Any recipe. Error for one that a run wrote and that is not as it was: it names the key, the run's
// value and the line where `kept` tells them.
io::TomlDocument read_unedited(const std::string& path, const KeptText& kept = {});

}  // namespace heddle::recipe
