#include "text/template/values/value.h"

#include <algorithm>
#include <compare>

#include "heddle/error.h"
#include "text/template/limits.h"

namespace heddle::text::chat {
namespace {

void check_depth(std::size_t depth) {
  if (depth > kMaxValueDepth)
    fail(ErrorCode::out_of_range, "value of a chat template", "lists and maps within each other",
         "at most " + std::to_string(kMaxValueDepth) + " levels", "more");
}

int sign_of(std::partial_ordering order) { return order < 0 ? -1 : (order > 0 ? 1 : 0); }

// The number of the entry that has the key; how many there are when none has.
std::size_t place_of(const Map& map, const Value& key) {
  if (key.is(Kind::string)) {
    const auto place = map.places.find(key.bytes());
    return place == map.places.end() ? map.entries.size() : place->second;
  }
  std::size_t at = 0;
  while (at < map.entries.size() && !(map.entries[at].first == key)) ++at;
  return at;
}

std::uint64_t heavier(std::uint64_t weight, std::uint64_t more) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  return std::min(most, weight + more);
}

bool equal_maps(const Map& a, const Map& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const std::size_t place = place_of(b, entry.first);
    return place < b.entries.size() && entry.second == b.entries[place].second;
  });
}

Order compare_sequences(const Sequence& a, const Sequence& b) {
  const std::size_t both = std::min(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < both; ++i)
    if (!(a.items[i] == b.items[i])) return compare(a.items[i], b.items[i]);
  return {.sign = sign_of(a.items.size() <=> b.items.size())};
}

// Integers beside reals as reals: exact enough for templates, where numbers are counts.
Order compare_numbers(const Value& a, const Value& b) {
  if (!a.is(Kind::real) && !b.is(Kind::real)) return {.sign = sign_of(a.integer() <=> b.integer())};
  const auto order = a.real() <=> b.real();
  // Not a number: neither less nor greater nor equal, which no sign can say.
  return {.ordered = order != std::partial_ordering::unordered, .sign = sign_of(order)};
}

}  // namespace

const Value* Attributes::find(std::string_view name) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == entries.end() ? nullptr : &found->second;
}

void Attributes::set(std::string_view name, Value value) {
  for (auto& [known, old] : entries) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  entries.emplace_back(std::string(name), std::move(value));
}

Value Value::undefined(std::string what) {
  return {Kind::undefined, std::make_shared<const std::string>(std::move(what))};
}

Value Value::none() { return {Kind::none, false}; }
Value Value::boolean(bool value) { return {Kind::boolean, value}; }
Value Value::integer(std::int64_t value) { return {Kind::integer, value}; }
Value Value::real(double value) { return {Kind::real, value}; }

Value Value::string(std::string bytes, bool from_user) {
  return string(MarkedText(std::move(bytes), from_user));
}

Value Value::string(MarkedText text, bool markup) {
  return {Kind::string, std::shared_ptr<const String>(std::make_shared<String>(
                            String{.text = std::move(text), .markup = markup}))};
}

Value Value::list(std::vector<Value> items, Form form) {
  std::size_t depth = 0;
  std::uint64_t weight = 1;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
    weight = heavier(weight, item.weight());
  }
  check_depth(depth + 1);
  return {Kind::sequence,
          std::shared_ptr<const Sequence>(std::make_shared<Sequence>(Sequence{
              .form = form, .items = std::move(items), .depth = depth + 1, .weight = weight}))};
}

Value Value::map(std::vector<std::pair<Value, Value>> entries) {
  auto map = std::make_shared<Map>();
  for (auto& [key, value] : entries) {
    map->depth = std::max({map->depth, key.depth() + 1, value.depth() + 1});
    map->weight = heavier(map->weight, heavier(key.weight(), value.weight()));
    if (const std::size_t place = place_of(*map, key); place < map->entries.size()) {
      map->entries[place].second = std::move(value);
      continue;
    }
    if (key.is(Kind::string)) map->places.emplace(key.bytes(), map->entries.size());
    map->entries.emplace_back(std::move(key), std::move(value));
  }
  check_depth(map->depth);
  return {Kind::map, std::shared_ptr<const Map>(std::move(map))};
}

Value Value::attributes(std::shared_ptr<Attributes> attributes, Kind kind) {
  return {kind, std::move(attributes)};
}

Value Value::macro(const Statement* macro) { return {Kind::macro, macro}; }
Value Value::function(std::string_view name) { return {Kind::function, name}; }

Value Value::method(Value self, std::string name) {
  return {Kind::method, std::shared_ptr<const Method>(std::make_shared<Method>(
                            Method{.self = std::move(self), .name = std::move(name)}))};
}

const std::string& Value::what() const {
  static const std::string nameless = "the value";
  const auto& what = std::get<std::shared_ptr<const std::string>>(data_);
  return what ? *what : nameless;
}

std::int64_t Value::integer() const {
  return is(Kind::boolean) ? std::int64_t{boolean()} : std::get<std::int64_t>(data_);
}

double Value::real() const {
  return is(Kind::real) ? std::get<double>(data_) : static_cast<double>(integer());
}

const Value* Value::find(std::string_view key) const {
  const auto place = map().places.find(key);
  return place == map().places.end() ? nullptr : &map().entries[place->second].second;
}

const Value* Value::find(const Value& key) const {
  const std::size_t place = place_of(map(), key);
  return place == map().entries.size() ? nullptr : &map().entries[place].second;
}

bool Value::truth() const {
  switch (kind_) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean: return boolean();
    case Kind::integer: return integer() != 0;
    case Kind::real: return real() != 0;
    case Kind::string: return !bytes().empty();
    case Kind::sequence: return sequence().form == Form::generator || !sequence().items.empty();
    case Kind::map: return !map().entries.empty();
    default: return true;
  }
}

bool Value::operator==(const Value& other) const {
  if (is_number() && other.is_number()) {
    const Order order = compare_numbers(*this, other);
    return order.ordered && order.sign == 0;
  }
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::string: return bytes() == other.bytes();
    case Kind::sequence:
      if (data_ == other.data_) return true;
      if (sequence().form == Form::generator || sequence().form != other.sequence().form)
        return false;
      return sequence().items == other.sequence().items;
    case Kind::map: return data_ == other.data_ || equal_maps(map(), other.map());
    case Kind::method:
      return method().name == other.method().name && method().self.same_object(other.method().self);
    default: return data_ == other.data_;
  }
}

Order compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is(Kind::string) && b.is(Kind::string))
    return {.sign = sign_of(a.bytes() <=> b.bytes())};  // UTF-8 sorts as code points do
  if (a.is(Kind::sequence) && b.is(Kind::sequence) && a.sequence().form == b.sequence().form &&
      (a.sequence().form == Form::list || a.sequence().form == Form::tuple))
    return compare_sequences(a.sequence(), b.sequence());
  return {.ordered = false};
}

std::string_view Value::kind_name() const noexcept {
  switch (kind_) {
    case Kind::undefined: return "an undefined value";
    case Kind::none: return "none";
    case Kind::boolean: return "a boolean";
    case Kind::integer: return "an integer";
    case Kind::real: return "a float";
    case Kind::string: return "a string";
    case Kind::sequence: break;
    case Kind::map: return "a mapping";
    case Kind::name_space: return "a namespace";
    case Kind::loop: return "the variable loop";
    case Kind::macro: return "a macro";
    case Kind::function: return "a function";
    case Kind::method: return "a method";
  }
  switch (sequence().form) {
    case Form::list: return "a list";
    case Form::tuple: return "a tuple";
    case Form::range: return "a range";
    case Form::items: return "the items of a mapping";
    case Form::keys: return "the keys of a mapping";
    case Form::values: return "the values of a mapping";
    case Form::generator: return "a sequence that a filter gives once";
  }
  return "a value";
}

std::size_t Value::depth() const noexcept {
  if (is(Kind::sequence)) return sequence().depth;
  if (is(Kind::map)) return map().depth;
  if (is(Kind::method)) return method().self.depth() + 1;
  return 0;
}

std::uint64_t Value::weight() const noexcept {
  constexpr std::size_t bytes_per_item = 16;
  if (is(Kind::string)) return 1 + bytes().size() / bytes_per_item;
  if (is(Kind::sequence)) return sequence().weight;
  if (is(Kind::map)) return map().weight;
  return 1;
}

}  // namespace heddle::text::chat
