// Parses names of choices, and refuses keys that have no meaning together with others.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml/toml.h"

namespace heddle::model {

// One of the values, by its to_string().
template <class E>
E choice(const io::TomlTable& table, std::string_view key, std::initializer_list<E> values) {
  std::vector<std::string> names;
  for (const E value : values) names.emplace_back(to_string(value));
  const std::string name = table.choice(key, names);
  for (const E value : values)
    if (to_string(value) == name) return value;
  return *values.begin();  // not reached: choice() refuses other names
}

template <class E>
E choice_or(const io::TomlTable& table, std::string_view key, E fallback,
            std::initializer_list<E> values) {
  std::vector<std::string> names;
  for (const E value : values) names.emplace_back(to_string(value));
  const std::string name = table.choice_or(key, to_string(fallback), names);
  for (const E value : values)
    if (to_string(value) == name) return value;
  return fallback;
}

// Refuses the key, if it is there, unless `ok`.
inline void only(const io::TomlTable& table, std::string_view key, bool ok,
                 std::string_view needed) {
  if (!ok && table.has(key)) table.refuse(key, "no such key without " + std::string(needed));
}

}  // namespace heddle::model
