#include "text/template/library/methods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "text/template/library/strings.h"
#include "text/template/values/operations.h"
#include "text/template/values/print.h"

namespace heddle::text::chat {
namespace {

// All of Python's, so that a template which asks for `text.title` sees what it sees there; calling
// one that call_method() does not know is refused.
constexpr auto kStringMethods = std::to_array<std::string_view>(
    {"capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
     "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
     "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
     "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
     "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
     "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
     "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
     "swapcase",     "title",       "translate", "upper",      "zfill"});
constexpr auto kMapMethods =
    std::to_array<std::string_view>({"copy", "fromkeys", "get", "items", "keys", "values"});
constexpr auto kListMethods = std::to_array<std::string_view>({"copy", "count", "index"});

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value from_parts(Run& run, std::vector<MarkedText> parts, bool markup) {
  run.make_list(parts.size());
  std::vector<Value> items;
  items.reserve(parts.size());
  for (MarkedText& part : parts) items.push_back(Value::string(std::move(part), markup));
  return Value::list(std::move(items));
}

Value strip(Run& run, const Value& self, std::string_view name, const Arguments& arguments) {
  const Bound bound(run, name, arguments, {"chars"});
  const Side side = name == "strip" ? Side::both : (name == "lstrip" ? Side::left : Side::right);
  const std::string* const characters = bound.string_or_none(0);
  if (characters) run.search(self.text().size() * std::min<std::size_t>(characters->size(), 4096));
  return Value::string(stripped(self.text(), side, characters), self.str().markup);
}

Value split_method(Run& run, const Value& self, const Arguments& arguments) {
  const Bound bound(run, "split", arguments, {"sep", "maxsplit"});
  const std::string* const separator = bound.string_or_none(0);
  if (separator && separator->empty())
    run.refuse("split", "a separator with a text", "an empty one");
  return from_parts(run, split(self.text(), separator, bound.integer(1, -1)), self.str().markup);
}

// One text, or a tuple of which one is enough.
Value starts_or_ends(Run& run, const Value& self, std::string_view name,
                     const Arguments& arguments) {
  const Bound bound(run, name, arguments, {"text"});
  const Value& given = bound.required(0);
  std::vector<Value> options = {given};
  if (given.is(Kind::sequence) && given.sequence().form == Form::tuple)
    options = given.sequence().items;
  bool found = false;
  for (const Value& option : options) {
    if (!option.is(Kind::string)) run.refuse(name, "a string", option.kind_name());
    found = found || (name == "startswith" ? self.bytes().starts_with(option.bytes())
                                           : self.bytes().ends_with(option.bytes()));
  }
  return Value::boolean(found);
}

Value remove_affix(Run& run, const Value& self, std::string_view name, const Arguments& arguments) {
  const Bound bound(run, name, arguments, {"text"});
  const std::string& affix = bound.string(0).bytes();
  const std::size_t size = self.text().size();
  if (name == "removeprefix" && self.bytes().starts_with(affix))
    return Value::string(self.text().part(affix.size(), size), self.str().markup);
  if (name == "removesuffix" && self.bytes().ends_with(affix))
    return Value::string(self.text().part(0, size - affix.size()), self.str().markup);
  return self;
}

Value replace_method(Run& run, const Value& self, const Arguments& arguments) {
  const Bound bound(run, "replace", arguments, {"old", "new", "count"});
  return Value::string(replace_text(run, self.text(), bound.string(0).bytes(),
                                    bound.string(1).text(), bound.integer(2, -1)));
}

Value find_method(Run& run, const Value& self, const Arguments& arguments) {
  const Bound bound(run, "find", arguments, {"sub"});
  const std::size_t found = find_text(self.bytes(), bound.string(0).bytes());
  if (found == std::string::npos) return Value::integer(-1);
  const std::string_view before = std::string_view(self.bytes()).substr(0, found);
  return Value::integer(static_cast<std::int64_t>(count_code_points(before)));
}

Value join_method(Run& run, const Value& self, const Arguments& arguments) {
  const Bound bound(run, "join", arguments, {"iterable"});
  const std::vector<Value> strings = items_of(run, bound.required(0), "join");
  for (const Value& item : strings)
    if (!item.is(Kind::string)) run.refuse("join", "strings", item.kind_name());
  return Value::string(joined(run, strings, self.text()));
}

// The value of a field {}, {0} or {name}; `next` counts the fields without a name.
const Value& format_field(Run& run, const std::string& field, const Arguments& arguments,
                          std::size_t& next) {
  if (field.find_first_of(":!.[") != std::string::npos)
    run.unsupported("format with the field {" + field + "}");
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), index);
  const bool number = error == std::errc() && end == field.data() + field.size();
  if (field.empty()) index = next++;
  if ((field.empty() || number) && index < arguments.plain.size()) return arguments.plain[index];
  for (const auto& [name, value] : arguments.named)
    if (name == field) return value;
  run.refuse("format", "an argument for each field", "none for {" + field + "}");
}

Value format_method(Run& run, const Value& self, const Arguments& arguments) {
  const std::string& bytes = self.bytes();
  MarkedText text;
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    text.append(self.text(), at, brace);
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      text.append(self.text(), brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t end = bytes.find('}', brace);
    if (bytes[brace] == '}' || end == std::string::npos)
      run.refuse("format", "braces in pairs", "a single one");
    const std::string field = bytes.substr(brace + 1, end - brace - 1);
    text.append(to_text(run, format_field(run, field, arguments, next)));
    run.make_string(text.size());
    at = end + 1;
  }
  return Value::string(std::move(text));
}

void no_arguments(Run& run, std::string_view name, const Arguments& arguments) {
  const Bound none(run, name, arguments, {});
}

Value string_method(Run& run, const Method& method, const Arguments& arguments) {
  const Value& self = method.self;
  const std::string& name = method.name;
  run.search(2 * self.text().size());
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return strip(run, self, name, arguments);
  if (name == "split") return split_method(run, self, arguments);
  if (name == "startswith" || name == "endswith") return starts_or_ends(run, self, name, arguments);
  if (self.str().markup)  // each has rules of its own for what it escapes
    run.unsupported("the method " + name + " of a string that went through `safe`");
  if (name == "removeprefix" || name == "removesuffix")
    return remove_affix(run, self, name, arguments);
  if (name == "replace") return replace_method(run, self, arguments);
  if (name == "find") return find_method(run, self, arguments);
  if (name == "join") return join_method(run, self, arguments);
  if (name == "format") return format_method(run, self, arguments);
  if (name == "count") {
    const Bound bound(run, name, arguments, {"sub"});
    return Value::integer(
        static_cast<std::int64_t>(count_text(self.bytes(), bound.string(0).bytes())));
  }
  no_arguments(run, name, arguments);
  if (name == "upper") return Value::string(upper(self.text()));
  if (name == "lower") return Value::string(lower(self.text()));
  if (name == "capitalize") return Value::string(capitalized(self.text()));
  if (name == "splitlines") return from_parts(run, split_lines(self.text()), false);
  run.unsupported("the method " + name + " of a string");
}

Value map_method(Run& run, const Method& method, const Arguments& arguments) {
  const Map& map = method.self.map();
  if (method.name == "get") {
    const Bound bound(run, "get", arguments, {"key", "default"});
    run.look_at(bound.required(0));
    const Value* const found = method.self.find(bound.required(0));
    return found ? *found : bound.or_else(1, Value::none());
  }
  const std::string& name = method.name;
  if (name != "items" && name != "keys" && name != "values")
    run.unsupported("the method " + name + " of a mapping");
  no_arguments(run, name, arguments);
  run.make_list(map.entries.size());
  std::vector<Value> items;
  items.reserve(map.entries.size());
  for (const auto& [key, value] : map.entries) {
    if (name == "items") {
      items.push_back(Value::list({key, value}, Form::tuple));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return Value::list(std::move(items), name == "items"  ? Form::items
                                       : name == "keys" ? Form::keys
                                                        : Form::values);
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  if (value.is(Kind::string)) return is_one_of(kStringMethods, name);
  if (value.is(Kind::map)) return is_one_of(kMapMethods, name);
  return value.is(Kind::sequence) && value.sequence().form == Form::list &&
         is_one_of(kListMethods, name);
}

Value call_method(Run& run, const Method& method, const Arguments& arguments) {
  if (method.self.is(Kind::string)) return string_method(run, method, arguments);
  if (method.self.is(Kind::map)) return map_method(run, method, arguments);
  run.unsupported("the method " + method.name + " of a list");
}

}  // namespace heddle::text::chat
