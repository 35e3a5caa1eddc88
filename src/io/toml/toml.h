// Settings, read strictly: recipes in TOML, and what others wrote about their models. Every value
// is requested by name and type; a key that was never requested is an error at the end, so that no
// setting is ever ignored. Errors name the file and
// line (or the command line option), the key, what was expected and what was found.
//
//   TomlDocument recipe = TomlDocument::read("recipe.toml");
//   recipe.apply("model.attention.kv_heads=2");
//   TomlTable model = recipe.root().table("model");
//   const std::int64_t layers = model.integer("layers", {1, 1000});
//   const double eps = model.number_or("norm_eps", 1e-5, {0, 1});
//   recipe.finish();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml/key_places.h"
#include "io/toml/toml_value.h"

namespace heddle::io {

inline constexpr std::size_t kMaxToml = std::size_t{1} << 20;  // recipes are pages, not books

// Both ends are allowed.
struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};
struct NumberRange {
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();
};

// The probable meaning of an unknown key that people write: a key of this document by its whole
// path and, if that one counts differently, how. Looked up by the last part of the written key.
struct KeyHabit {
  std::string key, remark;
};
using KeyHabits = std::map<std::string, KeyHabit, std::less<>>;

// What readers asked for when they asked for a key, whether it is there or not: what a reference of
// all keys is made of.
struct KeyFact {
  std::string type = {};  // "string", "boolean", "integer", "number"; empty: not asked by type
  bool list = false;      // an array of these
  bool required = false;  // an error where it is missing
  std::string low = {}, high = {};  // of integers and numbers; empty: any
  std::string fallback = {};  // as TOML has it; empty: the reader knows none, or one of its own
  std::vector<std::string> choices = {};
};

class GgufMetadata;
class Json;
class TomlState;

// A table of a document; one that the document lacks is like an empty one. Handles are cheap to
// copy and share the document.
//
// X(key) throws Error when the key is missing, X_or(key, fallback) returns the fallback. A value of
// another type or out of range is an Error in both. Asking makes the key known to finish().
class TomlTable {
 public:
  std::string path() const;  // "model.attention"; empty for the whole document
  bool exists() const;
  bool has(std::string_view key) const;
  bool is_array(std::string_view key) const;  // false as well when it is not there
  std::vector<std::string> keys() const;      // of the document, in its order; makes none known
  TomlTable table(std::string_view key) const;
  // The key, and all that is in it if it is a table, counts as requested: it has no effect.
  void pass_over(std::string_view key) const;

  std::string string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::int64_t integer(std::string_view key, IntegerRange range = {}) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback,
                          IntegerRange range = {}) const;
  // Integers are numbers too; infinities and NaN are not.
  double number(std::string_view key, NumberRange range = {}) const;
  double number_or(std::string_view key, double fallback, NumberRange range = {}) const;
  // One of the names.
  std::string choice(std::string_view key, const std::vector<std::string>& names) const;
  std::string choice_or(std::string_view key, std::string_view fallback,
                        const std::vector<std::string>& names) const;

  // Nothing where the key is missing.
  std::optional<bool> boolean_if(std::string_view key) const;
  std::optional<std::int64_t> integer_if(std::string_view key, IntegerRange range = {}) const;
  std::optional<double> number_if(std::string_view key, NumberRange range = {}) const;
  std::optional<std::vector<std::string>> strings_if(std::string_view key) const;

  // Arrays; for a missing one use has().
  std::vector<std::string> strings(std::string_view key) const;
  std::vector<bool> booleans(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key, IntegerRange range = {}) const;
  std::vector<double> numbers(std::string_view key, NumberRange range = {}) const;

  // Of a key that no function above asks for as it is meant: tells facts() more of it.
  void note(std::string_view key, const KeyFact& fact) const;

  // Where a key was set ("recipe.toml:12", "--set model.layers"), or the file when it was not.
  std::string where(std::string_view key) const;
  // For conditions that only the caller knows: names place and key, and what the value was.
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  friend class TomlDocument;
  TomlTable(std::shared_ptr<TomlState> state, std::vector<std::string> path);

  std::shared_ptr<TomlState> state_;
  std::vector<std::string> path_;
};

class TomlDocument {
 public:
  static TomlDocument read(const std::string& path);
  static TomlDocument parse(std::string_view text, const std::string& file);
  // The settings of a model that others wrote: the object of a config.json without its nulls; the
  // metadata of a GGUF file that begin with "table.", each by the rest of its name, dots included.
  static TomlDocument of_json(const Json& object);
  static TomlDocument of_gguf(const GgufMetadata& metadata, std::string_view table,
                              const std::string& file);

  TomlTable root() const;

  // Complaints about unknown and missing keys look here before they look for the nearest name.
  void expect_habits(const KeyHabits& habits);

  // Replaces or adds a value. `text` is TOML; text that is not, and does not begin like a string,
  // array or table, is taken as a string: precision=bf16, text=books/one.txt. Errors about the
  // value name `option` as its place.
  void set(std::string_view path, std::string_view text, std::string_view option = "--set");
  void apply(std::string_view assignment, std::string_view option = "--set");  // "path=text"
  // The same for a value that the program knows. A key that is there keeps its place.
  void put(std::string_view path, TomlData data);

  // Takes the keys that `base` has and this document lacks, one by one: where both have a key, this
  // one's value stays. Every key keeps its place, which may be in the base's file.
  void inherit(const TomlDocument& base);
  bool remove(std::string_view path);  // of a key or a table: whether it was there
  // Changes a string, or every string of an array; missing keys and other values stay. It keeps its
  // place.
  void map_strings(std::string_view path,
                   const std::function<std::string(const std::string&)>& change);

  // Throws Error naming every key that was never requested, with the nearest known one.
  void finish() const;

  // Every key that was requested, whether it is there or not, with the tables before it.
  std::vector<std::string> known() const;
  // What was asked of each of them, but for tables.
  std::map<std::string, KeyFact> facts() const;
  TomlValues values() const;
  // Of every key and table, overrides included, for errors that are found later.
  KeyPlaces places() const;

  // The document as it is now, overrides included; comments are lost. Parsing it gives the same
  // document, printing that the same text.
  std::string text() const;

 private:
  explicit TomlDocument(std::shared_ptr<TomlState> state);
  std::shared_ptr<TomlState> state_;
};

}  // namespace heddle::io
