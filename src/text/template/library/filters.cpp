#include "text/template/library/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "text/template/library/filter_table.h"
#include "text/template/library/strings.h"
#include "text/template/values/operations.h"
#include "text/template/values/print.h"
#include "text/template/values/read_json.h"

namespace heddle::text::chat {
namespace {

Value tojson(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "tojson", arguments,
                    {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{.ascii = bound.truth(0, false), .sorted = bound.truth(3, false)};
  const Value indent = bound.or_else(1, Value::none());
  style.lines = !indent.is(Kind::none);
  if (indent.is(Kind::string)) {
    style.indent = indent.text();
  } else if (style.lines) {
    const std::int64_t width = bound.required_integer(1);
    run.make_string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)));
    style.indent =
        MarkedText(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  style.item_separator = MarkedText(style.lines ? "," : ", ");
  style.key_separator = MarkedText(": ");
  const Value separators = bound.or_else(2, Value::none());
  if (!separators.is(Kind::none)) {
    const std::vector<Value> both = items_of(run, separators, "separators of tojson");
    if (both.size() != 2 || !both[0].is(Kind::string) || !both[1].is(Kind::string))
      run.refuse("separators of tojson", "two strings", separators.kind_name());
    style.item_separator = both[0].text();
    style.key_separator = both[1].text();
  }
  return Value::string(to_json(run, value, style));
}

Value from_json(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "from_json", arguments, {});
  if (!value.is(Kind::string)) run.refuse("from_json", "a string", value.kind_name());
  run.step(value.text().size());
  return read_json(value.bytes(), "from_json in a chat template", value.text().has_user_text());
}

Value trim(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "trim", arguments, {"chars"});
  const Value string = as_string(run, value);
  const std::string* const characters = bound.string_or_none(0);
  run.search(string.text().size() *
             (characters ? std::min<std::size_t>(characters->size(), 4096) : 1));
  return Value::string(stripped(string.text(), Side::both, characters), string.str().markup);
}

Value plain_string(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "string", arguments, {});
  return as_string(run, value);
}

Value safe(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "safe", arguments, {});
  return Value::string(to_text(run, value), true);
}

Value default_value(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "default", arguments, {"default_value", "boolean"});
  if (value.is(Kind::undefined) || (bound.truth(1, false) && !value.truth()))
    return bound.or_else(0, Value::string(""));
  return value;
}

template <MarkedText (*change)(const MarkedText&)>
Value changed_letters(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "a filter of letters", arguments, {});
  const Value string = as_string(run, value);
  run.make_string(3 * string.text().size());
  return Value::string(change(string.text()), string.str().markup);
}

Value replace(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "replace", arguments, {"old", "new", "count"});
  const Value count = bound.or_else(2, Value::none());
  return Value::string(replace_text(
      run, to_text(run, value), to_text(run, bound.required(0)).bytes(),
      to_text(run, bound.required(1)), count.is(Kind::none) ? -1 : bound.required_integer(2)));
}

Value indent(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "indent", arguments, {"width", "first", "blank"});
  if (!value.is(Kind::string)) run.refuse("indent", "a string", value.kind_name());
  const Value width = bound.or_else(0, Value::integer(4));
  const Value space =
      width.is(Kind::string) ? width : arithmetic(run, "*", Value::string(" "), width);
  MarkedText text = value.text();
  text.append("\n");
  const std::vector<MarkedText> lines = split_lines(text);
  run.make_string(text.size() + lines.size() * space.text().size());
  MarkedText result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result.append("\n");
    const bool indented =
        i == 0 ? bound.truth(1, false) : bound.truth(2, false) || lines[i].size() > 0;
    if (indented) result.append(space.text());
    result.append(lines[i]);
  }
  return Value::string(std::move(result), value.str().markup);
}

// A number as Python's int() or float() reads it, without its rarer forms (1_000, inf).
std::optional<double> read_real(const std::string& bytes) {
  const std::size_t begin = space_end(bytes, 0), end = space_begin(bytes, bytes.size());
  if (begin >= end) return std::nullopt;
  const char* first = bytes.data() + begin;
  const char* const last = bytes.data() + end;
  if (*first == '+') ++first;
  double value = 0;
  const auto [stop, error] = std::from_chars(first, last, value);
  if (error != std::errc() || stop != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

Value int_filter(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "int", arguments, {"default"});
  Value fallback = bound.or_else(0, Value::integer(0));
  if (value.is(Kind::undefined))
    run.refuse("int", "a value", value.what() + ", which is not defined");
  if (value.is(Kind::boolean) || value.is(Kind::integer)) return Value::integer(value.integer());
  std::optional<double> real;
  if (value.is(Kind::real)) real = value.real();
  if (value.is(Kind::string)) real = read_real(value.bytes());
  if (!real) return fallback;
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (!(std::fabs(*real) <= exact))
    run.refuse("int", "an integer that a float can hold", real_text(*real),
               ErrorCode::out_of_range);
  return Value::integer(static_cast<std::int64_t>(*real));
}

Value float_filter(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "float", arguments, {"default"});
  if (value.is(Kind::undefined))
    run.refuse("float", "a value", value.what() + ", which is not defined");
  if (value.is_number()) return Value::real(value.real());
  const std::optional<double> real =
      value.is(Kind::string) ? read_real(value.bytes()) : std::nullopt;
  return real ? Value::real(*real) : bound.or_else(0, Value::real(0));
}

Value abs_filter(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "abs", arguments, {});
  if (!value.is_number()) run.refuse("abs", "a number", value.kind_name());
  return negated(run, value, value.real() < 0);
}

Value length(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "length", arguments, {});
  return length_of(run, value);
}

constexpr auto kValueFilters = std::to_array<std::pair<std::string_view, Filter>>({
    {"abs", abs_filter},
    {"capitalize", changed_letters<capitalized>},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"float", float_filter},
    {"from_json", from_json},
    {"indent", indent},
    {"int", int_filter},
    {"length", length},
    {"lower", changed_letters<lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", plain_string},
    {"tojson", tojson},
    {"trim", trim},
    {"upper", changed_letters<upper>},
});

}  // namespace

Value as_string(Run& run, const Value& value) {
  return value.is(Kind::string) ? value : Value::string(to_text(run, value));
}

Filter value_filter(std::string_view name) {
  const auto* const found = std::find_if(kValueFilters.begin(), kValueFilters.end(),
                                         [&](const auto& entry) { return entry.first == name; });
  return found == kValueFilters.end() ? nullptr : found->second;
}

bool is_filter(std::string_view name) { return value_filter(name) || list_filter(name); }

Value apply_filter(Run& run, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  Filter filter = value_filter(name);
  if (!filter) filter = list_filter(name);
  if (!filter) run.unsupported("the filter " + std::string(name));
  return filter(run, value, arguments);
}

}  // namespace heddle::text::chat
