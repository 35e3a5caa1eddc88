// The reference of all keys of a recipe. Types, ranges, choices and defaults are what the readers
// of recipes ask for (io::KeyFact), gathered from small models that have each key; the meaning of a
// key is a line in key_meanings.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::recipe {

// `unless_given`: what holds for a key that is not there, where its reader has no default of its
// own.
struct KeyMeaning {
  std::string_view key;
  const char* meaning;
  const char* unless_given = nullptr;
};
std::span<const KeyMeaning> key_meanings();

struct KeyLine {
  std::string key;        // "model.attention.kv_heads"
  std::string type;       // "string", "boolean", "integer", "number", "string or list"
  bool list = false;      // an array of these
  bool required = false;  // by some kinds at least
  std::string low, high;  // empty: none
  std::vector<std::string> choices;
  // As TOML has it; of a key whose default depends on another, each with the model that has it.
  std::vector<std::pair<std::string, std::string>> defaults;
  const char* unless_given = nullptr;  // English; tr() of it is in the language of the process
  const char* meaning = nullptr;

  std::string table() const;  // "model.attention"; empty for keys above the first table
  // In the language of the process, with `names` as Markdown.
  std::string values_text() const;
  std::string default_text() const;
};

// Every key, in the order of key_meanings().
const std::vector<KeyLine>& key_lines();

// Every key, no table, that readers of recipes ask for, with a line or without.
std::vector<std::string> known_keys();

// Those that `word` names: a key by its whole path or its last part, or all of a table. Throws
// Error with the nearest name when there is none.
std::vector<KeyLine> keys_named(const std::string& word);

// A chapter of the documentation in the language of the process: docs/reference.md.
std::string reference_chapter();
// A table for each table of the recipe: what `heddle keys` shows.
std::string reference_tables(const std::vector<KeyLine>& lines);

}  // namespace heddle::recipe
