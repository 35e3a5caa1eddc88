#include "io/toml/toml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "io/toml/toml_state.h"
#include "io/utf8.h"

namespace heddle::io {
namespace {

std::string got_text(const TomlValue& value) {
  const char* kind = nullptr;
  if (std::holds_alternative<TomlArray>(value.data)) kind = "the array ";
  if (std::holds_alternative<TomlMembers>(value.data)) kind = "the table ";
  if (std::holds_alternative<TomlDate>(value.data)) kind = "the date ";
  if (std::holds_alternative<std::string>(value.data)) kind = "the string ";
  std::string text = toml_inline(value);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return (kind == nullptr ? "" : kind) + text;
}

std::string in_words(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string described(IntegerRange range) {
  const IntegerRange any;
  if (range.low == any.low && range.high == any.high) return "an integer";
  if (range.high == any.high) return "an integer of at least " + std::to_string(range.low);
  if (range.low == any.low) return "an integer of at most " + std::to_string(range.high);
  return "an integer from " + std::to_string(range.low) + " to " + std::to_string(range.high);
}

std::string described(NumberRange range) {
  const NumberRange any;
  if (range.low == any.low && range.high == any.high) return "a number";
  if (range.high == any.high) return "a number of at least " + in_words(range.low);
  if (range.low == any.low) return "a number of at most " + in_words(range.high);
  return "a number from " + in_words(range.low) + " to " + in_words(range.high);
}

template <class Range>
KeyFact ranged(const char* type, const Range& range) {
  const Range any;
  const auto text = [](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>)
      return in_words(value);
    else
      return std::to_string(value);
  };
  return {.type = type,
          .low = range.low == any.low ? "" : text(range.low),
          .high = range.high == any.high ? "" : text(range.high)};
}

// One type of value: what it is called, and how it is taken out of a node.
struct StringType {
  using Result = std::string;
  std::string expected() const { return "a string"; }
  KeyFact fact() const { return {.type = "string"}; }
  std::optional<std::string> take(const TomlValue& value) const {
    const auto* text = std::get_if<std::string>(&value.data);
    return text == nullptr ? std::nullopt : std::optional(*text);
  }
};

struct BooleanType {
  using Result = bool;
  std::string expected() const { return "true or false"; }
  KeyFact fact() const { return {.type = "boolean"}; }
  std::optional<bool> take(const TomlValue& value) const {
    const auto* flag = std::get_if<bool>(&value.data);
    return flag == nullptr ? std::nullopt : std::optional(*flag);
  }
};

struct IntegerType {
  using Result = std::int64_t;
  IntegerRange range;
  std::string expected() const { return described(range); }
  KeyFact fact() const { return ranged("integer", range); }
  std::optional<std::int64_t> take(const TomlValue& value) const {
    const auto* integer = std::get_if<std::int64_t>(&value.data);
    if (integer == nullptr || *integer < range.low || *integer > range.high) return std::nullopt;
    return *integer;
  }
};

struct NumberType {
  using Result = double;
  NumberRange range;
  std::string expected() const { return described(range); }
  KeyFact fact() const { return ranged("number", range); }
  std::optional<double> take(const TomlValue& value) const {
    const auto* integer = std::get_if<std::int64_t>(&value.data);
    const auto* number = std::get_if<double>(&value.data);
    if (integer == nullptr && number == nullptr) return std::nullopt;
    const double result = integer != nullptr ? static_cast<double>(*integer) : *number;
    if (!std::isfinite(result) || result < range.low || result > range.high) return std::nullopt;
    return result;
  }
};

struct ChoiceType {
  using Result = std::string;
  const std::vector<std::string>& names;
  KeyFact fact() const { return {.type = "string", .choices = names}; }
  std::string expected() const {
    std::string out = "one of";
    for (const std::string& name : names) out += (&name == names.data() ? " " : ", ") + name;
    return out;
  }
  std::optional<std::string> take(const TomlValue& value) const {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr || std::ranges::find(names, *text) == names.end()) return std::nullopt;
    return *text;
  }
};

template <class Type>
typename Type::Result checked(const TomlValue& value, const std::string& key, const Type& type) {
  const auto result = type.take(value);
  if (!result) fail_io(value.origin, "key " + key, type.expected(), got_text(value));
  return *result;
}

template <class Type>
typename Type::Result required(TomlState& state, const TomlPath& path, std::string_view key,
                               const Type& type) {
  KeyFact fact = type.fact();
  fact.required = true;
  state.note(path, key, fact);
  const TomlValue* value = state.ask(path, key);
  if (value == nullptr) state.missing(path, key, type.expected());
  return checked(*value, path_text(path, key), type);
}

template <class Type>
typename Type::Result optional_or(TomlState& state, const TomlPath& path, std::string_view key,
                                  typename Type::Result fallback, const Type& type) {
  KeyFact fact = type.fact();
  // Outside of what may be given it means that there is none.
  const TomlValue unless_given{fallback, {}};
  if (type.take(unless_given) && unless_given.data != TomlData{std::string()})
    fact.fallback = toml_inline(unless_given);
  state.note(path, key, fact);
  const TomlValue* value = state.ask(path, key);
  return value == nullptr ? std::move(fallback) : checked(*value, path_text(path, key), type);
}

template <class Type>
std::optional<typename Type::Result> if_there(TomlState& state, const TomlPath& path,
                                              std::string_view key, const Type& type) {
  state.note(path, key, type.fact());
  const TomlValue* value = state.ask(path, key);
  if (value == nullptr) return std::nullopt;
  return checked(*value, path_text(path, key), type);
}

template <class Type>
std::vector<typename Type::Result> elements(TomlState& state, const TomlPath& path,
                                            std::string_view key, const Type& type) {
  const std::string name = path_text(path, key);
  KeyFact fact = type.fact();
  fact.list = true;
  state.note(path, key, fact);
  const TomlValue* value = state.ask(path, key);
  if (value == nullptr) state.missing(path, key, "an array");
  const auto* array = std::get_if<TomlArray>(&value->data);
  if (array == nullptr) fail_io(value->origin, "key " + name, "an array", got_text(*value));
  std::vector<typename Type::Result> out;
  out.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i)
    out.push_back(checked((*array)[i], name + "[" + std::to_string(i) + "]", type));
  return out;
}

void list_places(const TomlMembers& table, const TomlPath& path,
                 std::map<std::string, std::string>& places) {
  for (const auto& [key, value] : table) {
    places[path_text(path, key)] = value.origin;
    TomlPath inner = path;
    inner.push_back(key);
    if (const TomlMembers* members = value.members()) list_places(*members, inner, places);
  }
}

void list_values(const TomlMembers& table, const TomlPath& path, TomlValues& values) {
  for (const auto& [key, value] : table) {
    TomlPath inner = path;
    inner.push_back(key);
    if (const TomlMembers* members = value.members())
      list_values(*members, inner, values);
    else
      values[path_text(inner)] = value;
  }
}

// Replaces or adds a value; its origin is the place that errors name.
void store(TomlMembers& root, const TomlPath& path, TomlValue value) {
  TomlMembers* table = &root;
  TomlPath done;
  for (; done.size() + 1 < path.size(); done.push_back(path[done.size()])) {
    const std::string& part = path[done.size()];
    if (find_member(*table, part) == nullptr)
      table->push_back({part, TomlValue{TomlMembers{}, value.origin}});
    TomlValue* inner = find_member(*table, part);
    if (inner->members() == nullptr)
      fail_io(value.origin, "key " + path_text(done, part) + " is not a table", {},
              got_text(*inner) + " at " + inner->origin);
    table = inner->members();
  }
  TomlValue* old = find_member(*table, path.back());
  if (old == nullptr) {
    table->push_back({path.back(), std::move(value)});
    return;
  }
  if (old->members() != nullptr && value.members() == nullptr)
    fail_io(value.origin, "key " + path_text(path) + " is a table", "a key inside of it",
            got_text(value));
  *old = std::move(value);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

TomlValue value_of_option(std::string_view text, const std::string& origin) {
  text = trimmed(text);
  if (text.empty()) fail_io(origin, "has no value", "a TOML value; \"\" is the empty string");
  std::optional<TomlValue> value = parse_toml_value(text, origin);
  if (value && !std::holds_alternative<TomlDate>(value->data)) return std::move(*value);
  if (std::string_view("\"'[{").find(text.front()) != std::string_view::npos)
    fail_io(origin, "is not a TOML value", {}, shown(text));
  return {std::string(text), origin};
}

}  // namespace

TomlTable::TomlTable(std::shared_ptr<TomlState> state, TomlPath path)
    : state_(std::move(state)), path_(std::move(path)) {}

std::string TomlTable::path() const { return path_text(path_); }

bool TomlTable::exists() const { return state_->find_table(path_) != nullptr; }

bool TomlTable::has(std::string_view key) const { return state_->ask(path_, key) != nullptr; }

bool TomlTable::is_array(std::string_view key) const {
  const TomlValue* value = state_->ask(path_, key);
  return value != nullptr && std::holds_alternative<TomlArray>(value->data);
}

void TomlTable::pass_over(std::string_view key) const {
  const TomlValue* value = state_->ask(path_, key);
  if (value == nullptr || value->members() == nullptr) return;
  const TomlTable inner = table(key);
  for (const std::string& each : inner.keys()) inner.pass_over(each);
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> out;
  if (const TomlMembers* table = state_->find_table(path_))
    for (const auto& [key, value] : *table) out.push_back(key);
  return out;
}

TomlTable TomlTable::table(std::string_view key) const {
  const TomlValue* value = state_->ask(path_, key);
  if (value != nullptr && value->members() == nullptr)
    fail_io(value->origin, "key " + path_text(path_, key), "a table", got_text(*value));
  TomlPath inner = path_;
  inner.emplace_back(key);
  return {state_, std::move(inner)};
}

std::string TomlTable::string(std::string_view key) const {
  return required(*state_, path_, key, StringType{});
}
std::string TomlTable::string_or(std::string_view key, std::string_view fallback) const {
  return optional_or(*state_, path_, key, std::string(fallback), StringType{});
}
bool TomlTable::boolean(std::string_view key) const {
  return required(*state_, path_, key, BooleanType{});
}
bool TomlTable::boolean_or(std::string_view key, bool fallback) const {
  return optional_or(*state_, path_, key, fallback, BooleanType{});
}
std::int64_t TomlTable::integer(std::string_view key, IntegerRange range) const {
  return required(*state_, path_, key, IntegerType{range});
}
std::int64_t TomlTable::integer_or(std::string_view key, std::int64_t fallback,
                                   IntegerRange range) const {
  return optional_or(*state_, path_, key, fallback, IntegerType{range});
}
double TomlTable::number(std::string_view key, NumberRange range) const {
  return required(*state_, path_, key, NumberType{range});
}
double TomlTable::number_or(std::string_view key, double fallback, NumberRange range) const {
  return optional_or(*state_, path_, key, fallback, NumberType{range});
}
std::string TomlTable::choice(std::string_view key, const std::vector<std::string>& names) const {
  return required(*state_, path_, key, ChoiceType{names});
}
std::string TomlTable::choice_or(std::string_view key, std::string_view fallback,
                                 const std::vector<std::string>& names) const {
  return optional_or(*state_, path_, key, std::string(fallback), ChoiceType{names});
}

std::optional<bool> TomlTable::boolean_if(std::string_view key) const {
  return if_there(*state_, path_, key, BooleanType{});
}
std::optional<std::int64_t> TomlTable::integer_if(std::string_view key, IntegerRange range) const {
  return if_there(*state_, path_, key, IntegerType{range});
}
std::optional<double> TomlTable::number_if(std::string_view key, NumberRange range) const {
  return if_there(*state_, path_, key, NumberType{range});
}
std::optional<std::vector<std::string>> TomlTable::strings_if(std::string_view key) const {
  note(key, {.type = "string", .list = true});
  if (!has(key)) return std::nullopt;
  return strings(key);
}

std::vector<std::string> TomlTable::strings(std::string_view key) const {
  return elements(*state_, path_, key, StringType{});
}
std::vector<bool> TomlTable::booleans(std::string_view key) const {
  return elements(*state_, path_, key, BooleanType{});
}
std::vector<std::int64_t> TomlTable::integers(std::string_view key, IntegerRange range) const {
  return elements(*state_, path_, key, IntegerType{range});
}
std::vector<double> TomlTable::numbers(std::string_view key, NumberRange range) const {
  return elements(*state_, path_, key, NumberType{range});
}

void TomlTable::note(std::string_view key, const KeyFact& fact) const {
  state_->note(path_, key, fact);
}

std::string TomlTable::where(std::string_view key) const {
  const TomlValue* value = state_->find(path_, key);
  return value == nullptr ? state_->file() : value->origin;
}

void TomlTable::refuse(std::string_view key, std::string_view expected) const {
  const TomlValue* value = state_->find(path_, key);
  fail_io(where(key), "key " + path_text(path_, key), expected,
          value == nullptr ? "nothing" : got_text(*value));
}

TomlDocument::TomlDocument(std::shared_ptr<TomlState> state) : state_(std::move(state)) {}

TomlDocument TomlDocument::read(const std::string& path) {
  return parse(read_file(path, kMaxToml), path);
}

TomlDocument TomlDocument::parse(std::string_view text, const std::string& file) {
  if (text.size() > kMaxToml)
    fail_io(file, "is too large", "at most " + std::to_string(kMaxToml) + " bytes",
            std::to_string(text.size()));
  return TomlDocument(std::make_shared<TomlState>(parse_toml(text, file), file));
}

TomlTable TomlDocument::root() const { return {state_, {}}; }

void TomlDocument::set(std::string_view path, std::string_view text, std::string_view option) {
  const TomlPath parts = split_path(path, std::string(option));
  const std::string origin = std::string(option) + " " + std::string(path);
  store(state_->root(), parts, value_of_option(text, origin));
}

void TomlDocument::put(std::string_view path, TomlData data) {
  const TomlPath parts = split_path(path, state_->file());
  const TomlValue* old = state_->find({parts.begin(), parts.end() - 1}, parts.back());
  store(state_->root(), parts,
        {std::move(data), old == nullptr ? state_->file() : std::string(old->origin)});
}

std::map<std::string, KeyFact> TomlDocument::facts() const { return state_->facts(); }

TomlValues TomlDocument::values() const {
  TomlValues all;
  list_values(state_->root(), {}, all);
  return all;
}

void TomlDocument::apply(std::string_view assignment, std::string_view option) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    fail_io(option, "has no value", "path=value, such as model.layers=4", shown(assignment));
  if (first_invalid_utf8(assignment) != std::string_view::npos)
    fail_io(option, "is not UTF-8, the encoding of TOML", "UTF-8", shown(assignment));
  set(trimmed(assignment.substr(0, equals)), assignment.substr(equals + 1), option);
}

void TomlDocument::expect_habits(const KeyHabits& habits) { state_->expect_habits(habits); }

void TomlDocument::finish() const { state_->finish(); }

std::vector<std::string> TomlDocument::known() const { return state_->known(); }

KeyPlaces TomlDocument::places() const {
  std::map<std::string, std::string> all;
  list_places(state_->root(), {}, all);
  return {state_->file(), std::move(all)};
}

std::string TomlDocument::text() const { return toml_text(state_->root()); }

}  // namespace heddle::io
