#include "io/toml/toml_state.h"

#include <algorithm>

#include "io/errors.h"

namespace heddle::io {
namespace {

// A key as errors show it: what is not printable must not reach a terminal.
std::string part_text(std::string_view key) {
  for (const char c : key)
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '.') return shown(key);
  return key.empty() ? "\"\"" : std::string(key.substr(0, 100));
}

}  // namespace

std::string path_text(const TomlPath& path) {
  std::string out;
  for (const std::string& part : path) out += (out.empty() ? "" : ".") + part_text(part);
  return out;
}

std::string path_text(const TomlPath& path, std::string_view key) {
  return (path.empty() ? "" : path_text(path) + ".") + part_text(key);
}

TomlPath split_path(std::string_view path, const std::string& option) {
  constexpr std::size_t kMaxParts = 32;
  TomlPath parts(1);
  for (const char c : path) {
    const bool bare = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (c == '.')
      parts.emplace_back();
    else if (bare)
      parts.back() += c;
    else
      parts.back().clear();
    if (parts.size() > kMaxParts || (c != '.' && !bare) || (c == '.' && parts.end()[-2].empty()))
      fail_io(option, "not the path of a key", "names joined by dots, such as model.layers",
              shown(path));
  }
  if (parts.back().empty())
    fail_io(option, "not the path of a key", "names joined by dots, such as model.layers",
            shown(path));
  return parts;
}

const TomlMembers* TomlState::find_table(const TomlPath& path) const {
  const TomlMembers* table = root_.members();
  TomlPath done;
  for (const std::string& part : path) {
    const TomlValue* value = find_member(*table, part);
    if (value == nullptr) return nullptr;
    table = value->members();
    if (table == nullptr)
      fail_io(value->origin, "key " + path_text(done, part), "a table", toml_inline(*value));
    done.push_back(part);
  }
  return table;
}

const TomlValue* TomlState::find(const TomlPath& path, std::string_view key) const {
  const TomlMembers* table = find_table(path);
  return table == nullptr ? nullptr : find_member(*table, key);
}

const TomlValue* TomlState::ask(const TomlPath& path, std::string_view key) {
  known_[path].emplace(key);
  return find(path, key);
}

std::string TomlState::meant_as(const TomlPath& path, std::string_view key) const {
  std::vector<std::string> candidates;
  const auto known = known_.find(path);
  if (const TomlMembers* table = find_table(path))
    for (const auto& [name, value] : *table)
      if (known == known_.end() || !known->second.contains(name)) candidates.push_back(name);
  for (const std::string& name : candidates)
    if (const auto habit = habits_.find(name);
        habit != habits_.end() && habit->second.key == path_text(path, key))
      return name;
  return nearest_name(key, candidates);
}

// "the table training at recipe.toml:9" where the table of a missing key is not there and another,
// never requested, has nearly its name; or nothing.
std::string TomlState::meant_table(const TomlPath& path) const {
  if (path.size() != 1 || find_table(path) != nullptr) return "";
  const auto known = known_.find(TomlPath{});
  std::vector<std::string> others;
  for (const auto& [name, value] : *root_.members()) {
    if (known != known_.end() && known->second.contains(name)) continue;
    if (value.members() == nullptr) continue;
    others.push_back(name);
    if (name.starts_with(path[0])) return "the table " + part_text(name) + " at " + value.origin;
  }
  const std::string near = nearest_name(path[0], others);
  return near.empty() ? "" : "the table " + part_text(near) + " at " + find({}, near)->origin;
}

// Where the table stands that a key should be in, or the one around it.
std::string TomlState::place_of(TomlPath path) const {
  while (!path.empty()) {
    const std::string last = std::move(path.back());
    path.pop_back();
    if (const TomlValue* table = find(path, last)) return table->origin;
  }
  return file_;
}

// A slip of the pen, or another system's word, is the likeliest reason.
void TomlState::missing(const TomlPath& path, std::string_view key,
                        std::string_view expected) const {
  const std::string near = meant_as(path, key);
  const std::string got = near.empty()
                              ? meant_table(path)
                              : "the key " + part_text(near) + " at " + find(path, near)->origin;
  fail_io(place_of(path), "key " + path_text(path, key) + " is missing", expected, got);
}

// " (did you mean heads?)", or the keys there are when none is near, or nothing.
std::string TomlState::suggestion(const TomlPath& path, const std::string& key) const {
  if (const auto habit = habits_.find(key); habit != habits_.end())
    return " (did you mean " + habit->second.key + "?" +
           (habit->second.remark.empty() ? "" : " " + habit->second.remark) + ")";
  const auto here = known_.find(path);
  if (here != known_.end()) {
    const std::string near = nearest_name(key, here->second);
    if (!near.empty()) return " (did you mean " + part_text(near) + "?)";
  }
  for (const auto& [table, keys] : known_)
    if (keys.contains(key)) return " (did you mean " + path_text(table, key) + "?)";
  constexpr std::size_t kFew = 20;
  if (here == known_.end() || here->second.empty() || here->second.size() > kFew) return "";
  std::string all;
  for (const std::string& name : here->second) all += (all.empty() ? "" : ", ") + part_text(name);
  return " (known here: " + all + ")";
}

void TomlState::list_unknown(const TomlMembers& table, const TomlPath& path,
                             std::vector<std::string>& complaints) const {
  const auto known = known_.find(path);
  for (const auto& [key, value] : table) {
    if (known == known_.end() || !known->second.contains(key)) {
      complaints.push_back(value.origin + ": unknown key " + path_text(path, key) +
                           suggestion(path, key));
    } else if (const TomlMembers* members = value.members()) {
      TomlPath inner = path;
      inner.push_back(key);
      list_unknown(*members, inner, complaints);
    }
  }
}

std::vector<std::string> TomlState::known() const {
  std::vector<std::string> all;
  for (const auto& [table, keys] : known_)
    for (const std::string& key : keys) all.push_back(path_text(table, key));
  return all;
}

void TomlState::note(const TomlPath& path, std::string_view key, const KeyFact& fact) {
  KeyFact& known = facts_[path_text(path, key)];
  if (known.type.empty()) known.type = fact.type;
  if (known.low.empty() && known.high.empty()) {
    known.low = fact.low;
    known.high = fact.high;
  }
  if (known.fallback.empty()) known.fallback = fact.fallback;
  known.list = known.list || fact.list;
  known.required = known.required || fact.required;
  for (const std::string& choice : fact.choices)
    if (std::ranges::find(known.choices, choice) == known.choices.end())
      known.choices.push_back(choice);
}

void TomlState::finish() const {
  std::vector<std::string> complaints;
  list_unknown(*root_.members(), {}, complaints);
  if (complaints.empty()) return;
  if (complaints.size() == 1) {
    const std::size_t colon = complaints[0].find(": unknown key");
    fail_io(complaints[0].substr(0, colon), complaints[0].substr(colon + 2));
  }
  constexpr std::size_t kShown = 20;
  std::string all = std::to_string(complaints.size()) + " unknown keys";
  for (std::size_t i = 0; i < complaints.size() && i < kShown; ++i) all += "\n  " + complaints[i];
  if (complaints.size() > kShown) all += "\n  ...";
  fail_io(file_, all);
}

}  // namespace heddle::io
