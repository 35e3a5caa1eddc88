// A TOML document in memory: what toml.cpp reads from, overrides and prints. Own types, so that
// toml++ is compiled in toml_parse.cpp alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace heddle::io {

struct TomlValue;
struct TomlMember;
struct TomlDate {
  std::string text;

  bool operator==(const TomlDate&) const = default;
};
using TomlArray = std::vector<TomlValue>;
using TomlMembers = std::vector<TomlMember>;  // in the order of the file

using TomlData =
    std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlArray, TomlMembers>;

struct TomlValue {
  TomlData data;
  std::string origin;  // "recipe.toml:12", or the option it came with

  const TomlMembers* members() const { return std::get_if<TomlMembers>(&data); }
  TomlMembers* members() { return std::get_if<TomlMembers>(&data); }

  // The same type and value, wherever they are and however they were written.
  bool operator==(const TomlValue& other) const;
};

struct TomlMember {
  std::string key;
  TomlValue value;

  bool operator==(const TomlMember&) const = default;
};

const TomlValue* find_member(const TomlMembers& members, std::string_view key);
TomlValue* find_member(TomlMembers& members, std::string_view key);

// Throws Error with the line of whatever is wrong.
TomlValue parse_toml(std::string_view text, const std::string& file);
// One value as it may follow `key =`; nothing when the text is not one.
std::optional<TomlValue> parse_toml_value(std::string_view text, const std::string& origin);

// Scalars and arrays before tables, otherwise in the order of the members. Parsing it gives the
// same document.
std::string toml_text(const TomlMembers& root);
std::string toml_inline(const TomlValue& value);  // on one line

// All keys of a document that are no tables: "model.attention.heads" -> 4.
using TomlValues = std::map<std::string, TomlValue>;

}  // namespace heddle::io
