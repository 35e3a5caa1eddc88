// Functions of TomlDocument for documents that are based on others.
#include <algorithm>
#include <utility>

#include "io/toml/toml.h"
#include "io/toml/toml_state.h"

namespace heddle::io {
namespace {

// In the base's order, followed by the keys that only the child has.
TomlMembers merged(const TomlMembers& base, TomlMembers child) {
  TomlMembers all = base;
  for (TomlMember& own : child) {
    TomlValue* theirs = find_member(all, own.key);
    if (theirs == nullptr) {
      all.push_back(std::move(own));
      continue;
    }
    if (theirs->members() != nullptr && own.value.members() != nullptr)
      own.value.data = merged(*theirs->members(), std::move(*own.value.members()));
    *theirs = std::move(own.value);
  }
  return all;
}

// The table that a key stands in; nullptr where there is none.
TomlMembers* table_of(TomlMembers& root, const TomlPath& path) {
  TomlMembers* table = &root;
  for (std::size_t i = 0; table != nullptr && i + 1 < path.size(); ++i) {
    TomlValue* inner = find_member(*table, path[i]);
    table = inner == nullptr ? nullptr : inner->members();
  }
  return table;
}

}  // namespace

void TomlDocument::inherit(const TomlDocument& base) {
  state_->root() = merged(base.state_->root(), std::move(state_->root()));
}

bool TomlDocument::remove(std::string_view path) {
  const TomlPath parts = split_path(path, state_->file());
  TomlMembers* table = table_of(state_->root(), parts);
  return table != nullptr && std::erase_if(*table, [&](const TomlMember& member) {
                               return member.key == parts.back();
                             }) > 0;
}

void TomlDocument::map_strings(std::string_view path,
                               const std::function<std::string(const std::string&)>& change) {
  const TomlPath parts = split_path(path, state_->file());
  TomlMembers* table = table_of(state_->root(), parts);
  TomlValue* value = table == nullptr ? nullptr : find_member(*table, parts.back());
  if (value == nullptr) return;
  if (auto* text = std::get_if<std::string>(&value->data)) *text = change(*text);
  if (auto* array = std::get_if<TomlArray>(&value->data))
    for (TomlValue& element : *array)
      if (auto* text = std::get_if<std::string>(&element.data)) *text = change(*text);
}

}  // namespace heddle::io
