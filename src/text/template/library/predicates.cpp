#include "text/template/library/predicates.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "text/template/values/operations.h"

namespace heddle::text::chat {
namespace {

using About = bool (*)(const Value&);

bool is_sequence(const Value& v) {  // what has a length and a subscript in Python
  if (v.is(Kind::sequence))
    return v.sequence().form == Form::list || v.sequence().form == Form::tuple ||
           v.sequence().form == Form::range;
  return v.is(Kind::string) || v.is(Kind::map) || v.is(Kind::undefined);
}

bool is_iterable(const Value& v) {
  return v.is(Kind::sequence) || v.is(Kind::string) || v.is(Kind::map) || v.is(Kind::undefined);
}

constexpr auto kAboutOne = std::to_array<std::pair<std::string_view, About>>({
    {"defined", [](const Value& v) { return !v.is(Kind::undefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::undefined); }},
    {"none", [](const Value& v) { return v.is(Kind::none); }},
    {"string", [](const Value& v) { return v.is(Kind::string); }},
    {"mapping", [](const Value& v) { return v.is(Kind::map); }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"boolean", [](const Value& v) { return v.is(Kind::boolean); }},
    {"true", [](const Value& v) { return v.is(Kind::boolean) && v.boolean(); }},
    {"false", [](const Value& v) { return v.is(Kind::boolean) && !v.boolean(); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"integer", [](const Value& v) { return v.is(Kind::integer); }},
    {"float", [](const Value& v) { return v.is(Kind::real); }},
    {"callable",
     [](const Value& v) {
       return v.is(Kind::macro) || v.is(Kind::function) || v.is(Kind::method);
     }},
});

// With one argument: the operator that they stand for.
constexpr auto kAboutTwo = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"equalto", "=="},
    {"eq", "=="},
    {"ne", "!="},
    {"lt", "<"},
    {"lessthan", "<"},
    {"le", "<="},
    {"gt", ">"},
    {"greaterthan", ">"},
    {"ge", ">="},
    {"in", "in"},
});

constexpr auto kAboutIntegers = std::to_array<std::string_view>({"odd", "even", "divisibleby"});

template <class Table>
auto entry(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.first == name; });
}

bool about_integer(Run& run, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  if (name == "divisibleby") {
    const Bound bound(run, name, arguments, {"num"});
    return arithmetic(run, "%", value, bound.required(0)) == Value::integer(0);
  }
  const Bound none(run, name, arguments, {});
  return arithmetic(run, "%", value, Value::integer(2)) == Value::integer(name == "odd" ? 1 : 0);
}

}  // namespace

bool is_predicate(std::string_view name) {
  return entry(kAboutOne, name) != kAboutOne.end() || entry(kAboutTwo, name) != kAboutTwo.end() ||
         std::find(kAboutIntegers.begin(), kAboutIntegers.end(), name) != kAboutIntegers.end();
}

bool holds(Run& run, std::string_view name, const Value& value, const Arguments& arguments) {
  if (const auto* const one = entry(kAboutOne, name); one != kAboutOne.end()) {
    const Bound none(run, name, arguments, {});
    return one->second(value);
  }
  if (const auto* const two = entry(kAboutTwo, name); two != kAboutTwo.end()) {
    const Bound bound(run, name, arguments, {"other"});
    return compares(run, two->second, value, bound.required(0));
  }
  if (!is_predicate(name)) run.unsupported("the test " + std::string(name));
  return about_integer(run, name, value, arguments);
}

}  // namespace heddle::text::chat
