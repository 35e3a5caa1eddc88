// State shared by a TomlDocument and its tables: the values, and which keys were requested.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml/toml.h"
#include "io/toml/toml_value.h"

namespace heddle::io {

using TomlPath = std::vector<std::string>;  // parts may have dots inside

std::string path_text(const TomlPath& path);
std::string path_text(const TomlPath& path, std::string_view key);
// "model.attention.heads": bare keys only. Errors name `option`.
TomlPath split_path(std::string_view path, const std::string& option);

class TomlState {
 public:
  TomlState(TomlValue root, std::string file) : root_(std::move(root)), file_(std::move(file)) {}

  const std::string& file() const noexcept { return file_; }
  TomlMembers& root() { return *root_.members(); }
  // Throws Error when something on the way is not a table; nullptr when something is missing.
  const TomlMembers* find_table(const TomlPath& path) const;
  // Makes the key known.
  const TomlValue* ask(const TomlPath& path, std::string_view key);
  const TomlValue* find(const TomlPath& path, std::string_view key) const;

  [[noreturn]] void missing(const TomlPath& path, std::string_view key,
                            std::string_view expected) const;
  void expect_habits(const KeyHabits& habits) { habits_ = habits; }
  void finish() const;
  std::vector<std::string> known() const;
  // A key that is asked for more than once has what any of them said of it.
  void note(const TomlPath& path, std::string_view key, const KeyFact& fact);
  const std::map<std::string, KeyFact>& facts() const noexcept { return facts_; }

 private:
  // A key of the table, never requested, that may be meant as the missing one; or empty.
  std::string meant_as(const TomlPath& path, std::string_view key) const;
  std::string meant_table(const TomlPath& path) const;
  std::string place_of(TomlPath path) const;
  void list_unknown(const TomlMembers& table, const TomlPath& path,
                    std::vector<std::string>& complaints) const;
  std::string suggestion(const TomlPath& path, const std::string& key) const;

  TomlValue root_;
  std::string file_;
  std::map<TomlPath, std::set<std::string, std::less<>>> known_;  // by table
  std::map<std::string, KeyFact> facts_;
  KeyHabits habits_;
};

}  // namespace heddle::io
