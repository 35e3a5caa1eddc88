#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "text/template/library/filter_table.h"
#include "text/template/library/filters.h"
#include "text/template/library/predicates.h"
#include "text/template/library/strings.h"
#include "text/template/values/operations.h"

namespace heddle::text::chat {
namespace {

const std::string kDot = ".";

// attribute='a.b' or attribute=0: the part of an item that a filter is about.
Value attribute_value(Run& run, Value item, const Value& attribute) {
  if (attribute.is(Kind::none)) return item;
  if (!attribute.is(Kind::string)) return item_of(run, item, attribute);
  for (const MarkedText& part : split(attribute.text(), &kDot, -1)) {
    std::int64_t index = 0;
    const std::string& name = part.bytes();
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number =
        !name.empty() && name[0] != '-' && error == std::errc() && end == name.data() + name.size();
    item = item_of(run, item, number ? Value::integer(index) : Value::string(part));
  }
  return item;
}

// The key that is compared: strings without regard to case, unless asked for.
Value sort_key(Run& run, const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = attribute_value(run, item, attribute);
  if (case_sensitive || !key.is(Kind::string)) return key;
  run.make_string(2 * key.text().size());
  return Value::string(lower(key.text()));
}

// Items with their keys, sorted; equal ones keep their order.
std::vector<Value> sorted(Run& run, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::uint64_t heaviest = 1;
  for (const auto& [key, item] : keyed) heaviest = std::max(heaviest, key.weight());
  std::uint64_t rounds = 1;
  for (std::size_t size = keyed.size(); size > 1; size /= 2) ++rounds;
  run.step(std::min<std::uint64_t>(heaviest, run.limits().steps) * rounds * keyed.size());
  // By number, so that equal ones keep their order: std::stable_sort uses what C++20 calls
  // deprecated, and clang says so.
  std::vector<std::size_t> order(keyed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const Value &a = keyed[i].first, &b = keyed[j].first;
    const Order found = reverse ? compare(b, a) : compare(a, b);
    if (!found.ordered)
      run.refuse("sorting", "values that have an order",
                 std::string(a.kind_name()) + " and " + std::string(b.kind_name()));
    return found.sign != 0 ? found.sign < 0 : i < j;
  });
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const std::size_t i : order) items.push_back(std::move(keyed[i].second));
  return items;
}

Value sort(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const Value attribute = bound.or_else(2, Value::none());
  if (attribute.is(Kind::string) && attribute.bytes().find(',') != std::string::npos)
    run.unsupported("sort by several attributes");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(run, value, "sort"))
    keyed.emplace_back(sort_key(run, item, attribute, bound.truth(1, false)), item);
  return Value::list(sorted(run, std::move(keyed), bound.truth(0, false)));
}

Value dictsort(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!value.is(Kind::map)) run.refuse("dictsort", "a mapping", value.kind_name());
  const Value by = bound.or_else(1, Value::string("key"));
  if (!(by == Value::string("key")) && !(by == Value::string("value")))
    run.refuse("dictsort", "by 'key' or 'value'", by.kind_name());
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, item] : value.map().entries)
    keyed.emplace_back(
        sort_key(run, by.bytes() == "key" ? key : item, Value::none(), bound.truth(0, false)),
        Value::list({key, item}, Form::tuple));
  run.make_list(keyed.size());
  return Value::list(sorted(run, std::move(keyed), bound.truth(2, false)));
}

template <bool largest>
Value extreme(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> items = items_of(run, value, largest ? "max" : "min");
  if (items.empty()) return Value::undefined("the extreme of an empty list");
  const auto key = [&](const Value& item) {
    return sort_key(run, item, bound.or_else(1, Value::none()), bound.truth(0, false));
  };
  Value best = items[0], best_key = key(best);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value other = key(items[i]);
    if (!compares(run, largest ? ">" : "<", other, best_key)) continue;
    best = items[i];
    best_key = std::move(other);
  }
  return best;
}

Value unique(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Value> keys, items;
  for (const Value& item : items_of(run, value, "unique")) {
    Value key = sort_key(run, item, bound.or_else(1, Value::none()), bound.truth(0, false));
    run.step(keys.size() * key.weight());
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(std::move(key));
    items.push_back(item);
  }
  return Value::list(std::move(items), Form::generator);
}

Value join(Run& run, const Value& value, const Arguments& arguments) {
  const Bound bound(run, "join", arguments, {"d", "attribute"});
  const Value separator = as_string(run, bound.or_else(0, Value::string("")));
  std::vector<Value> strings = items_of(run, value, "join");
  for (Value& item : strings)
    item = as_string(run, attribute_value(run, item, bound.or_else(1, Value::none())));
  return Value::string(joined(run, strings, separator.text()));
}

Value items(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "items", arguments, {});
  std::vector<Value> pairs;
  if (!value.is(Kind::undefined)) {
    if (!value.is(Kind::map)) run.refuse("items", "a mapping", value.kind_name());
    run.make_list(value.map().entries.size());
    for (const auto& [key, item] : value.map().entries)
      pairs.push_back(Value::list({key, item}, Form::tuple));
  }
  return Value::list(std::move(pairs), Form::generator);
}

Value list(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "list", arguments, {});
  return Value::list(items_of(run, value, "list"));
}

template <bool front>
Value end_item(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, front ? "first" : "last", arguments, {});
  if (!front && value.is(Kind::sequence) && value.sequence().form == Form::generator)
    run.refuse("last", "a list", value.kind_name());
  const std::vector<Value> all = items_of(run, value, front ? "first" : "last");
  if (all.empty()) return Value::undefined("an item of an empty list");
  return front ? all.front() : all.back();
}

Value reverse(Run& run, const Value& value, const Arguments& arguments) {
  const Bound none(run, "reverse", arguments, {});
  if (value.is(Kind::string)) return slice_of(run, value, Value(), Value(), Value::integer(-1));
  std::vector<Value> all = items_of(run, value, "reverse");
  std::reverse(all.begin(), all.end());
  return Value::list(std::move(all), Form::generator);
}

// The items that select, map and their like go through: none, where the value is none or anything
// else that is false.
std::vector<Value> items_if_any(Run& run, const Value& value, std::string_view filter) {
  if (!value.truth()) return {};
  return items_of(run, value, filter);
}

// Whether an item is chosen by select and its like: by a test, or by its own truth.
bool is_chosen(Run& run, const Value& item, const Arguments& arguments, std::size_t test) {
  if (arguments.plain.size() <= test) return item.truth();
  const Value& name = arguments.plain[test];
  if (!name.is(Kind::string)) run.refuse("select", "the name of a test", name.kind_name());
  const auto rest = arguments.plain.begin() + static_cast<std::ptrdiff_t>(test) + 1;
  return holds(run, name.bytes() == "==" ? "eq" : name.bytes(), item,
               {.plain = {rest, arguments.plain.end()}, .named = arguments.named});
}

template <bool keep, bool by_attribute>
Value select(Run& run, const Value& value, const Arguments& arguments) {
  if (by_attribute && arguments.plain.empty())
    run.refuse(keep ? "selectattr" : "rejectattr", "the name of an attribute", "none");
  std::vector<Value> chosen;
  for (const Value& item : items_if_any(run, value, "select")) {
    run.step();
    const Value subject = by_attribute ? attribute_value(run, item, arguments.plain[0]) : item;
    if (is_chosen(run, subject, arguments, by_attribute ? 1 : 0) == keep) chosen.push_back(item);
  }
  return Value::list(std::move(chosen), Form::generator);
}

Value map(Run& run, const Value& value, const Arguments& arguments) {
  std::vector<Value> results;
  if (arguments.plain.empty()) {
    const Bound bound(run, "map", arguments, {"attribute", "default"});
    for (const Value& item : items_if_any(run, value, "map")) {
      Value part = attribute_value(run, item, bound.required(0));
      results.push_back(part.is(Kind::undefined) ? bound.or_else(1, part) : std::move(part));
    }
  } else {
    if (!arguments.plain[0].is(Kind::string))
      run.refuse("map", "the name of a filter", arguments.plain[0].kind_name());
    const Arguments rest{.plain = {arguments.plain.begin() + 1, arguments.plain.end()},
                         .named = arguments.named};
    const Level level(run);  // map('map', 'map', ...)
    for (const Value& item : items_if_any(run, value, "map"))
      results.push_back(apply_filter(run, arguments.plain[0].bytes(), item, rest));
  }
  return Value::list(std::move(results), Form::generator);
}

constexpr auto kListFilters = std::to_array<std::pair<std::string_view, Filter>>({
    {"dictsort", dictsort},
    {"first", end_item<true>},
    {"items", items},
    {"join", join},
    {"last", end_item<false>},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"sort", sort},
    {"unique", unique},
});

}  // namespace

Filter list_filter(std::string_view name) {
  const auto* const found = std::find_if(kListFilters.begin(), kListFilters.end(),
                                         [&](const auto& entry) { return entry.first == name; });
  return found == kListFilters.end() ? nullptr : found->second;
}

}  // namespace heddle::text::chat
