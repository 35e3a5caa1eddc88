// Keys of recipes by the names that other systems give them.
#pragma once

#include <string>
#include <string_view>

#include "io/toml/toml.h"

namespace heddle::recipe {

// "lr" -> "train.learning_rate", "n_head" -> "model.attention.heads"; a name of Heddle's own -> its
// whole path, "kv_heads" -> "model.attention.kv_heads". Empty for others.
std::string recipe_key(std::string_view name);

// The same for complaints about a recipe's keys.
const io::KeyHabits& key_habits();

}  // namespace heddle::recipe
